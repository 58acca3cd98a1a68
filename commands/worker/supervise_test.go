//go:build unix

package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestChildPassesMaxRuntime(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(childSpec) childSpec) {
		spec := shell("sleep 20")
		spec.MaxRuntime = 100 * time.Millisecond
		wantEnd(t, run(t, way(spec)), "SIGTERM max_runtime")

		spec = shell("trap 'echo asked' TERM; while :; do sleep 0.05; done")
		spec.MaxRuntime, spec.KillAfter = 300*time.Millisecond, 300*time.Millisecond
		started := time.Now()
		e := run(t, way(spec))
		wantEnd(t, e, "SIGKILL max_runtime")
		if d := time.Since(started); d < 600*time.Millisecond || d > 5*time.Second || string(e.Stdout) != "asked\n" {
			t.Errorf("killed after %v, said %q", d, e.Stdout)
		}

		spec = shell("trap 'exit 4' TERM; while :; do sleep 0.01; done")
		spec.MaxRuntime = 300 * time.Millisecond
		wantEnd(t, run(t, way(spec)), "exit 4 max_runtime")

		spec = shell("kill -STOP $$") // a stopped process must be woken to hear of it
		spec.MaxRuntime = 200 * time.Millisecond
		wantEnd(t, run(t, way(spec)), "SIGTERM max_runtime")
	})
}

func TestChildEndsWithItsLease(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(childSpec) childSpec) {
		spec := shell("sleep 20")
		spec.Lease = in(200*time.Millisecond, 10*time.Second)
		wantEnd(t, run(t, way(spec)), "SIGTERM lease")

		spec = shell("trap '' TERM; sleep 20")
		spec.KillAfter = time.Minute // the lease does not wait for that
		spec.Lease = in(100*time.Millisecond, 400*time.Millisecond)
		c := start(t, way(spec))
		eventually(t, 5*time.Second, "the child's end", func() bool { return !alive(c.Pid) })
		if now := time.Now(); now.Before(spec.Lease.Kill) {
			t.Errorf("killed %v too early", spec.Lease.Kill.Sub(now))
		}
		wantEnd(t, c.Wait(), "SIGKILL lease")

		spec = shell("sleep 20")
		spec.Lease = in(-time.Second, -time.Second) // lost before it began
		if c, err := startChild(t.Context(), way(spec)); !errors.Is(err, errLate) {
			t.Errorf("it was started: %v, %v", c, err)
		}
	})
}

func TestChildOutlivesALeaseThatIsExtended(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(childSpec) childSpec) {
		spec := shell("sleep 1.2; exit 7")
		spec.Lease = in(700*time.Millisecond, 900*time.Millisecond)
		c := start(t, way(spec))
		for beat := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-beat.C:
				c.Extend(in(700*time.Millisecond, 900*time.Millisecond))
				continue
			case <-c.Done():
			}
			beat.Stop()
			break
		}
		wantEnd(t, c.Wait(), "exit 7")
	})
}

func TestChildObeysOrders(t *testing.T) {
	everyWay(t, func(t *testing.T, way func(childSpec) childSpec) {
		c := start(t, way(shell("sleep 20")))
		c.Stop()
		wantEnd(t, c.Wait(), "SIGTERM stop")

		c = start(t, way(shell("sleep 20")))
		c.Kill()
		c.Kill()
		wantEnd(t, c.Wait(), "SIGKILL kill")
		c.Kill() // and any order to one that has ended
		c.Stop()
		c.Extend(in(time.Hour, time.Hour))

		ready := filepath.Join(t.TempDir(), "ready")
		spec := shell("trap '' TERM; echo $$ >$0; sleep 20")
		spec.Args[2] = ready
		spec.KillAfter = 100 * time.Millisecond
		c = start(t, way(spec))
		pidsIn(t, ready, 1)
		c.Stop()
		wantEnd(t, c.Wait(), "SIGKILL stop")
	})
}

// family is a script that writes the process ids of a child, a background child and one in a session of its own.
const family = `f=$1
(echo $(exec sh -c 'echo $PPID') >>$f; sleep 20; :) &
setsid sh -c 'echo $$ >>$1; sleep 20; :' sh $f &
(setsid sh -c 'echo $$ >>$1; exec sleep 20' sh $f &) # its parent ends at once
until [ "$(wc -l <$f)" -ge 3 ]; do sleep 0.01; done
echo $$ >>$f
`

func TestChildsEndEndsItsFamily(t *testing.T) {
	needSetsid(t)
	for name, script := range map[string]string{
		"after its own end": family + "exit 3",
		"after a kill":      family + "sleep 20",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pids")
			c := start(t, shell("touch $1;"+script, file))
			pids := pidsIn(t, file, 4)
			if strings.HasSuffix(script, "sleep 20") {
				c.Kill()
			}
			if e := c.Wait(); e.Err != nil || e.Left != 0 {
				t.Errorf("got %+v", e)
			}
			wantGone(t, 0, pids) // by the time it is reported
		})
	}
}

func needSetsid(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil || runtime.GOOS != "linux" {
		t.Skip("only Linux promises to find processes in other sessions")
	}
}

// startStarter runs a worker process with one child.
func startStarter(t *testing.T, script string, term, kill time.Duration) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Script": script, "Term": term, "Kill": kill})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self()[0], "starter", string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestKilledWorkerLeavesNoProcess(t *testing.T) {
	needSetsid(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	worker := startStarter(t, fmt.Sprintf("set -- %s; touch $1; trap '' TERM HUP INT; %s sleep 20", file, family), 0, 0)
	pids := pidsIn(t, file, 4)
	worker.Process.Kill()
	wantGone(t, 2*time.Second, pids)
}

func TestFrozenWorkersChildEndsWithItsLease(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	worker := startStarter(t, fmt.Sprintf("trap '' TERM; echo $$ >%s; sleep 20", file), 1500*time.Millisecond, 2*time.Second)
	started := time.Now()
	pids := pidsIn(t, file, 1)
	worker.Process.Signal(unix.SIGSTOP)
	if !alive(pids[0]) {
		t.Fatal("the child ended before its worker froze")
	}
	wantGone(t, 2*time.Second+500*time.Millisecond, pids)
	if d := time.Since(started); d < time.Second {
		t.Errorf("it was killed after %v", d)
	}
}

func TestKilledSupervisingParentIsReported(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	c := start(t, shell("(sleep 20; :) & echo $! >$1; echo $$ >>$1; echo before >&2; sleep 20", file))
	pids := pidsIn(t, file, 2)
	c.supervisor.Kill()
	e := c.Wait()
	if e.Err == nil || e.ExitCode != nil || e.Signal != "" || string(e.StderrTail) != "before\n" {
		t.Errorf("got %+v", e)
	}
	wantGone(t, 2*time.Second, pids)
}

func TestServiceSignalsPassTheSupervisingParentBy(t *testing.T) {
	c := start(t, shell("sleep 0.3; exit 6"))
	for _, sig := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		c.supervisor.Signal(sig)
	}
	wantEnd(t, c.Wait(), "exit 6")
}

func TestStolenPipeDoesNotDelayTheEnd(t *testing.T) {
	needSetsid(t)
	everyWay(t, func(t *testing.T, way func(childSpec) childSpec) {
		script := `echo out; echo err >&2; sleep 20 &
setsid sh -c 'echo $$ >$1; sleep 5' sh $1 &
until [ -s $1 ]; do sleep 0.01; done; echo end; exit 2`
		started := time.Now()
		e := run(t, way(shell(script, filepath.Join(t.TempDir(), "pid"))))
		wantEnd(t, e, "exit 2")
		if d := time.Since(started); d > 3*time.Second || string(e.Stdout) != "out\nend\n" || string(e.StderrTail) != "err\n" {
			t.Errorf("took %v, stdout %q, stderr %q", d, e.Stdout, e.StderrTail)
		}
	})
}
