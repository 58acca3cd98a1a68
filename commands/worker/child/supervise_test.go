//go:build unix

package child

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

func TestSuperviseMaxRuntime(t *testing.T) {
	t.Parallel()
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		spec := shell("sleep 60")
		spec.MaxRuntime = 100 * time.Millisecond
		wantEnd(t, run(t, way(spec)), "SIGTERM max_runtime")

		// The runtime starts before the shell does, and must not end before the shell has set its trap.
		spec = shell("trap 'exit 4' TERM; while :; do sleep 0.01; done")
		spec.MaxRuntime, spec.KillAfter = 2*time.Second, time.Minute
		obedient := start(t, way(spec))

		spec = shell("trap 'echo asked' TERM; while :; do sleep 0.05; done")
		spec.MaxRuntime, spec.KillAfter = 2*time.Second, 2*time.Second
		started := time.Now()
		e := run(t, way(spec))
		wantEnd(t, e, "SIGKILL max_runtime")
		if d := time.Since(started); d < 4*time.Second || d > time.Minute || string(e.Stdout) != "asked\n" {
			t.Errorf("killed after %v, said %q", d, e.Stdout)
		}
		wantEnd(t, obedient.Wait(), "exit 4 max_runtime")

		spec = shell("kill -STOP $$") // a stopped process must be continued to handle TERM
		spec.MaxRuntime = 200 * time.Millisecond
		wantEnd(t, run(t, way(spec)), "SIGTERM max_runtime")
	})
}

func TestSuperviseLeaseEnd(t *testing.T) {
	t.Parallel()
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		spec := shell("sleep 120")
		spec.Lease = in(3*time.Second, time.Minute)
		obedient := start(t, way(spec))

		ready := filepath.Join(t.TempDir(), "ready")
		spec = shell("trap '' TERM; echo $$ >$1; sleep 60", ready)
		spec.KillAfter = time.Minute // the lease does not wait for that
		spec.Lease = in(time.Hour, time.Hour)
		c := start(t, way(spec))
		pidsIn(t, ready, 1)
		lease := in(100*time.Millisecond, 400*time.Millisecond)
		if err := c.Extend(lease); err != nil {
			t.Fatal(err)
		}
		eventually(t, 15*time.Second, "the child's end", func() bool { return !alive(c.Pid) })
		if now := time.Now(); now.Before(lease.Kill) {
			t.Errorf("killed %v too early", lease.Kill.Sub(now))
		}
		wantEnd(t, c.Wait(), "SIGKILL lease")
		wantEnd(t, obedient.Wait(), "SIGTERM lease")

		spec = shell("sleep 20")
		spec.Lease = in(-time.Second, -time.Second) // lost before the start
		if c, err := Start(t.Context(), way(spec)); !errors.Is(err, ErrLate) {
			t.Errorf("it was started: %v, %v", c, err)
		}
	})
}

func TestProcessExtend(t *testing.T) {
	t.Parallel()
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		end := filepath.Join(t.TempDir(), "end")
		spec := shell("until [ -e $1 ]; do sleep 0.05; done; exit 7", end)
		spec.Lease = in(4*time.Second, 5*time.Second)
		c := start(t, way(spec))
		for beat := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case now := <-beat.C:
				c.Extend(in(4*time.Second, 5*time.Second))
				if now.After(spec.Lease.Kill) { // the first lease has ended by now
					if err := os.WriteFile(end, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				continue
			case <-c.Done():
			}
			beat.Stop()
			break
		}
		wantEnd(t, c.Wait(), "exit 7")
		if time.Now().Before(spec.Lease.Kill) {
			t.Error("it ended within its first lease")
		}
	})
}

func TestProcessStopAndKill(t *testing.T) {
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		c := start(t, way(shell("sleep 20")))
		c.Stop()
		wantEnd(t, c.Wait(), "SIGTERM stop")

		c = start(t, way(shell("sleep 20")))
		c.Kill()
		c.Kill()
		wantEnd(t, c.Wait(), "SIGKILL kill")
		c.Kill() // commands to a process that has ended do nothing
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

// family is a script that writes the process ids of a child, a background child, and a child in its own
// session.
const family = `f=$1
(echo $(exec sh -c 'echo $PPID') >>$f; sleep 120; :) &
setsid sh -c 'echo $$ >>$1; sleep 120; :' sh $f &
(setsid sh -c 'echo $$ >>$1; exec sleep 120' sh $f &) # its parent ends at once
until [ "$(wc -l <$f)" -ge 3 ]; do sleep 0.01; done
echo $$ >>$f
`

func TestSuperviseEndsDescendants(t *testing.T) {
	needSetsid(t)
	for name, script := range map[string]string{
		"after its own end": family + "exit 3",
		"after a kill":      family + "sleep 120",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pids")
			c := start(t, shell("touch $1;"+script, file))
			pids := pidsIn(t, file, 4)
			if strings.HasSuffix(script, "sleep 120") {
				c.Kill()
			}
			if e := c.Wait(); e.Err != nil || e.Left != 0 {
				t.Errorf("got %+v", e)
			}
			wantGone(t, 0, pids) // before the end is reported
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

func TestSuperviseAfterWorkerKilled(t *testing.T) {
	needSetsid(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	script := fmt.Sprintf("set -- %s; touch $1; trap '' TERM HUP INT; %s sleep 120", file, family)
	worker := startStarter(t, script, 0, 0)
	pids := pidsIn(t, file, 4)
	worker.Process.Kill()
	wantGone(t, 40*time.Second, pids)
}

func TestSuperviseWhileWorkerFrozen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	started := time.Now()
	script := fmt.Sprintf("trap '' TERM; echo $$ >%s; sleep 120", file)
	worker := startStarter(t, script, 4*time.Second, 5*time.Second)
	pids := pidsIn(t, file, 1)
	worker.Process.Signal(unix.SIGSTOP)
	if !alive(pids[0]) {
		t.Fatal("the child ended before its worker froze")
	}
	wantGone(t, 40*time.Second, pids)
	if d := time.Since(started); d < 5*time.Second {
		t.Errorf("it was killed after %v", d)
	}
}

func TestProcessReportsKilledSupervisor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	c := start(t, shell("echo before >&2; (sleep 120; :) & echo $! >$1; echo $$ >>$1; sleep 120", file))
	pids := pidsIn(t, file, 2)
	c.supervisor.Kill()
	e := c.Wait()
	if e.Err == nil || e.ExitCode != nil || e.Signal != "" || string(e.StderrTail) != "before\n" {
		t.Errorf("got %+v", e)
	}
	wantGone(t, 40*time.Second, pids)
}

func TestSuperviseIgnoresServiceSignals(t *testing.T) {
	t.Parallel()
	c := start(t, shell("sleep 0.3; exit 6"))
	for _, sig := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		c.supervisor.Signal(sig)
	}
	wantEnd(t, c.Wait(), "exit 6")
}

func TestStreamHeldPipeDoesNotDelayEnd(t *testing.T) {
	needSetsid(t)
	withAndWithoutSupervisor(t, func(t *testing.T, way func(Spec) Spec) {
		script := `echo out; echo err >&2; sleep 60 &
setsid sh -c 'echo $$ >$1; exec sleep 60' sh $1 &
until [ -s $1 ]; do sleep 0.01; done; echo end; exit 2`
		file := filepath.Join(t.TempDir(), "pid")
		started := time.Now()
		e := run(t, way(shell(script, file)))
		d := time.Since(started)
		if stray := pidsIn(t, file, 1)[0]; alive(stray) {
			t.Cleanup(func() { _ = unix.Kill(stray, unix.SIGKILL) })
		}
		wantEnd(t, e, "exit 2")
		if d > 30*time.Second || string(e.Stdout) != "out\nend\n" || string(e.StderrTail) != "err\n" {
			t.Errorf("took %v, stdout %q, stderr %q", d, e.Stdout, e.StderrTail)
		}
	})
}

// TestCostIsOfAllProcesses: processor time of all that the command started counts, even if a process has
// left its session and was orphaned, and memory is that of the largest. A small process says nothing of it.
func TestCostIsOfAllProcesses(t *testing.T) {
	t.Parallel()
	needSetsid(t)
	const burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
	alone := start(t, shell(burn)).Wait().Cost
	cpu := func(c Cost) time.Duration { return c.CPUUser + c.CPUSystem }
	if cpu(alone) <= 0 || alone.MaxRSS != 0 {
		t.Errorf("one shell cost %+v", alone)
	}
	many := start(t, shell("f=$(mktemp); for s in 1 2 3; do (setsid sh -c '"+burn+"; echo >>'$f &); done;"+
		"while [ $(wc -l <$f) -lt 3 ]; do sleep 0.05; done; rm $f;"+
		"head -c 67108864 /dev/zero | sort >/dev/null")).Wait()
	if c := many.Cost; cpu(c) < 2*cpu(alone) || c.MaxRSS < 60<<20 || c.MaxRSS > 2<<30 ||
		*many.ExitCode != 0 {
		t.Errorf("three of them and a sort of 64 MiB ended with %v and cost %+v, want more than twice %+v",
			*many.ExitCode, c, alone)
	}
}
