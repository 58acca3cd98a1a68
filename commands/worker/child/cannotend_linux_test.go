package child

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const otherUser = 65534

// asRoot is a command that becomes root, as sudo does: it says its process id and lives until the file is
// gone.
func asRoot(file string) {
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		panic(err)
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		panic(err)
	}
	appendLine(file, strconv.Itoa(os.Getpid()))
	for range 6000 {
		if _, err := os.Stat(file); err != nil {
			os.Exit(3)
		}
		time.Sleep(10 * time.Millisecond) // pause of a poll
	}
	os.Exit(1)
}

// keeperProgram writes what it is given into a file, and ends with the code in the file next to it.
func keeperProgram(args []string) {
	appendLine(args[0], args[1])
	code, _ := os.ReadFile(args[0] + ".code")
	n, _ := strconv.Atoi(strings.TrimSpace(string(code)))
	os.Exit(n)
}

func appendLine(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	_, err = f.WriteString(line + "\n")
	if err != nil || f.Close() != nil {
		panic(err)
	}
}

// unsignalled is a worker that is not root, and whose command becomes root.
type unsignalled struct {
	testing.TB
	dir, log, pids, kept string
	worker               *exec.Cmd
}

// beginUnsignalled starts the worker, and waits until the command is root. The script of the command is
// formatted with the path of the program that becomes root, and its argument.
func beginUnsignalled(t testing.TB, script, spec string) *unsignalled {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir, err := os.MkdirTemp("", "unsignalled")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	u := &unsignalled{TB: t, dir: dir, log: dir + "/log", pids: dir + "/pids", kept: dir + "/kept"}
	u.ok(os.Chmod(dir, 0o777)) //nolint:gosec // another user writes into it
	program := u.copy("program", 0o755)
	root := u.copy("root", 0o4755)
	text, err := json.Marshal(map[string]any{
		"Script": fmt.Sprintf(script, root+" as-root "+u.pids), "Log": u.log,
		"Keeper": []string{program, "keeper", u.kept}, "After": 300 * time.Millisecond})
	u.ok(err)
	more := strings.TrimSuffix(string(text), "}") + "," + spec + "}"
	u.worker = exec.Command(program, "starter", more)
	u.worker.Stderr = os.Stderr
	u.worker.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	u.ok(u.worker.Start())
	t.Cleanup(func() {
		_ = os.Remove(u.pids)
		_ = u.worker.Process.Kill()
		_ = u.worker.Wait()
	})
	eventually(t, 60*time.Second, "the command's becoming root", func() bool {
		text, err := os.ReadFile(u.pids)
		return err == nil && len(text) > 0
	})
	return u
}

func (u *unsignalled) ok(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

func (u *unsignalled) copy(name string, mode uint32) string {
	u.Helper()
	from, err := os.Open(self()[0])
	u.ok(err)
	defer from.Close()
	path := filepath.Join(u.dir, name)
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // it is a program
	u.ok(err)
	_, err = io.Copy(to, from)
	u.ok(err)
	u.ok(to.Close())
	u.ok(unix.Chmod(path, mode))
	return path
}

// said waits until the log has a line that begins so, and returns it.
func (u *unsignalled) said(begin string) (line string) {
	u.Helper()
	eventually(u, 60*time.Second, "a line "+begin, func() bool {
		text, _ := os.ReadFile(u.log)
		for l := range strings.Lines(string(text)) {
			if strings.HasPrefix(l, begin) {
				line = strings.TrimSpace(l)
			}
		}
		return line != ""
	})
	return line
}

func (u *unsignalled) root() int { return pidsIn(u, u.pids, 1)[0] }

// keptAtLeast waits until the lease was kept n times, and returns what the program was given the last time.
func (u *unsignalled) keptAtLeast(n int) string {
	u.Helper()
	var lines []string
	eventually(u, 60*time.Second, fmt.Sprintf("the lease to be kept %d times", n), func() bool {
		text, _ := os.ReadFile(u.kept)
		lines = strings.Fields(strings.ReplaceAll(string(text), " ", "_"))
		return len(lines) >= n
	})
	return strings.ReplaceAll(lines[len(lines)-1], "_", " ")
}

func (u *unsignalled) noEnd() {
	u.Helper()
	if text, _ := os.ReadFile(u.log); strings.Contains(string(text), "ended") || !alive(u.root()) {
		u.Errorf("it has ended: %s", text)
	}
}

// TestCannotEndUnsignallable: a command that became root has not ended while it lives, whatever should end
// it, and the worker hears which process that is.
func TestCannotEndUnsignallable(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"the command":     "exec %s",
		"its child":       "trap '' TERM; %s; exit 3",
		"one left behind": "%s & sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := beginUnsignalled(t, script, `"Max":1000000000`)
			want := fmt.Sprintf("said pid %d (root) belongs to root", u.root())
			if got := u.said("said pid"); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			time.Sleep(killTimeout + time.Second) // nothing gives up
			u.noEnd()
			u.ok(os.Remove(u.pids))
			if got := u.said("ended"); !strings.HasSuffix(got, " max_runtime") {
				t.Error(got)
			}
			if text, _ := os.ReadFile(u.kept); len(text) > 0 {
				t.Errorf("kept next to a worker that lives: %s", text)
			}
		})
	}
}

// TestCannotEndKeepsTheLease: where the worker is killed, or frozen, the supervising parent lives as long as
// such a process does, and keeps the lease.
func TestCannotEndKeepsTheLease(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"killed": unix.SIGKILL, "frozen": unix.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := beginUnsignalled(t, "exec %s", `"Term":3000000000,"Kill":4000000000`)
			u.ok(u.worker.Process.Signal(sig))
			want := fmt.Sprintf("pid %d (root) belongs to root", u.root())
			if got := u.keptAtLeast(3); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			u.noEnd()
			u.ok(os.WriteFile(u.kept+".code", []byte("1"), 0o644))
			u.keptAtLeast(6) // what fails is tried again
			u.ok(os.WriteFile(u.kept+".code", []byte("4"), 0o644))
			time.Sleep(2 * time.Second)
			before, _ := os.ReadFile(u.kept)
			time.Sleep(2 * time.Second)
			if after, _ := os.ReadFile(u.kept); len(after) > len(before) {
				t.Error("it is kept though the claim is over")
			}
			u.noEnd()
			root := u.root()
			u.ok(os.Remove(u.pids))
			wantGone(t, 10*time.Second, []int{root})
		})
	}
}
