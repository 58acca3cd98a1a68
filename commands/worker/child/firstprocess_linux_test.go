package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSuperviseBelowFirstProcess runs children in a PID namespace whose first process, which adopts orphans,
// is their worker: as in a container.
func TestSuperviseBelowFirstProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(self()[0], "first")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		t.Skipf("no new PID namespace: %v", err)
	}
	if text := string(out); strings.HasPrefix(text, "skip") {
		t.Skip(text)
	} else if err != nil || text != "done\n" {
		t.Errorf("%v: %s", err, text)
	}
}

func firstProcess() {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fmt.Println("skip: private mounts:", err)
		os.Exit(0)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Println("skip: /proc:", err)
		os.Exit(0)
	}
	for i := range 10 {
		script := "(sleep 0 &); (setsid sleep 20 &); sleep 20 & exit $1"
		c, err := Start(context.Background(), shell(script, fmt.Sprint(i)))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if got := how(c.Wait()); got != fmt.Sprintf("exit %d", i) {
			fmt.Println(i, got)
		}
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		fmt.Println("there are children left:", err)
	}
	fmt.Println("done")
	os.Exit(0)
}
