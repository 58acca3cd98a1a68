package process

import (
	"os"
	"os/exec"
	"testing"

	"github.com/oklog/ulid/v2"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// A process is known to have ended where its boot id was made on this machine, and not otherwise; another one
// that has its pid since does not stand for it.
func TestGoneProcess(t *testing.T) {
	mine := NewBoot()
	if mine == NewBoot() {
		t.Error("two boot ids are the same")
	}
	if Gone(mine, os.Getpid()) {
		t.Error("this process is gone")
	}
	if !Gone(mine, os.Getppid()) {
		t.Error("a process that began at another time stands for this one")
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	pid := ended.Process.Pid
	if !Gone(mine, pid) {
		t.Error("a process that ended is there")
	}
	elsewhere := ulid.Make()
	mark(&elsewhere, "another machine", Began(os.Getpid()))
	for _, boot := range []string{elsewhere.String(), ulid.Make().String(), "boot-1", ""} {
		if Gone(boot, pid) {
			t.Errorf("boot %q, of another machine or program: gone", boot)
		}
	}
}
