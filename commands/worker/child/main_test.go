//go:build unix

package child

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jobledger/ledger/ledgertest"
)

// TestMain lets this program be its own supervising parent, and a worker that a test can freeze and kill.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			if err := Supervise(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			syscall.Exit(0) // without the second for which the race detector delays os.Exit
		case "starter":
			starter(os.Args[2])
		case "first":
			firstProcess()
		case "as-root":
			asRoot(os.Args[2])
		case "keeper":
			keeperProgram(os.Args[2:])
		}
	}
	ledgertest.DefaultSignals()
	os.Exit(m.Run())
}

// starter runs the command that the text describes, until this process is killed.
func starter(text string) {
	var s struct {
		Script     string
		Term, Kill time.Duration
		Max, After time.Duration
		Keeper     []string
		Log        string // what CannotEnd says
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	spec := shell(s.Script)
	if s.Kill > 0 {
		spec.Lease = in(s.Term, s.Kill)
	}
	spec.MaxRuntime, spec.KillAfter = s.Max, s.After
	if len(s.Keeper) > 0 {
		spec.Keeper = Keeper{Args: s.Keeper, Every: 200 * time.Millisecond}
	}
	if s.Log != "" {
		spec.CannotEnd = func(why string) { appendLine(s.Log, "said "+why) }
	}
	c, err := Start(context.Background(), spec)
	if err != nil {
		panic(err)
	}
	e := c.Wait()
	if s.Log != "" {
		appendLine(s.Log, "ended "+how(e))
	}
	time.Sleep(20 * time.Second) // outlives its command; its test kills it
	os.Exit(0)
}

func self() []string {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{exe, "supervise"}
}

// shell describes a supervised sh script.
func shell(script string, args ...string) Spec {
	return Spec{
		Supervisor: self(), Path: "/bin/sh", Args: append([]string{"-c", script, "sh"}, args...),
		Env: []string{"PATH=" + os.Getenv("PATH")},
	}
}

func in(term, kill time.Duration) Deadlines {
	now := time.Now()
	return Deadlines{Term: now.Add(term), Kill: now.Add(kill)}
}

func start(t testing.TB, spec Spec) *Process {
	t.Helper()
	c, err := Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t testing.TB, spec Spec) End {
	t.Helper()
	return start(t, spec).Wait()
}

// how describes the end of a command.
func how(e End) string {
	switch {
	case e.ExitCode != nil && e.Signal == "" && e.Err == nil:
		return strings.TrimSpace(fmt.Sprintf("exit %d %s", *e.ExitCode, e.Cause))
	case e.ExitCode == nil && e.Signal != "" && e.Err == nil:
		return strings.TrimSpace(e.Signal + " " + string(e.Cause))
	}
	return fmt.Sprintf("%+v", e)
}

func wantEnd(t testing.TB, e End, want string) {
	t.Helper()
	if got := how(e); got != want {
		t.Errorf("child ended with %q, want %q; stderr: %s", got, want, e.StderrTail)
	}
	// in the supervising parent, which has the same stderr
	if bytes.Contains(e.StderrTail, []byte("DATA RACE")) {
		t.Errorf("%s", e.StderrTail)
	}
}

// eventually polls until ok.
func eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) { // pause of a poll
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// pidsIn waits until a file holds n process ids, each written as a line.
func pidsIn(t testing.TB, file string, n int) (pids []int) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("%d process ids in %s", n, file), func() bool {
		text, _ := os.ReadFile(file)
		pids = nil
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && strings.HasSuffix(line, "\n") {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !bytes.Contains(stat[bytes.LastIndexByte(stat, ')'):], []byte(") Z "))
}

func wantGone(t testing.TB, within time.Duration, pids []int) {
	t.Helper()
	eventually(t, within, fmt.Sprintf("the end of processes %d", pids), func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

// withAndWithoutSupervisor runs a test with a supervising parent and without one.
func withAndWithoutSupervisor(t *testing.T, test func(t *testing.T, way func(Spec) Spec)) {
	t.Run("supervised", func(t *testing.T) {
		t.Parallel()
		test(t, func(s Spec) Spec { return s })
	})
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		test(t, func(s Spec) Spec { s.Supervisor = nil; return s })
	})
}
