package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// killsOnce is a command that prints its argument, fails if that ends with 7, and once kills the run that it
// belongs to.
const killsOnce = `if [ "$0" = "it's 8" ] && mkdir killed; then
kill -9 ${JOBLEDGER_WORKER##*-}; exec sleep 60; fi
echo "begin $0"; echo "end $0"; case $0 in *7) exit 3;; esac`

// A run of many that is killed in the midst is resumed: each job ends as it should, once, and the outputs are
// those of one command after the other.
func TestRunManyKilled(t *testing.T) {
	if ledgertest.OnPostgres(t) {
		t.Skip("--resume is for a ledger of the user's own")
	}
	t.Parallel()
	s := newSite(t)
	n := 20
	if ledgertest.Long() {
		n = 300
	}
	var want, names strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&names, "it's %d\n", i)
		fmt.Fprintf(&want, "begin it's %d\nend it's %d\n", i, i)
	}
	s.ok(os.WriteFile(s.path("names"), []byte(names.String()), 0o600))
	flags := []string{"run", "-k", "-j", "4", "--lease", "8s", "--max-attempts", "2"}
	first := s.outcomeOf(s.command(append(flags, "--batch", "b", "--lines", "names", "sh", "-c", killsOnce)...))
	if first.code != -1 {
		t.Fatalf("it was not killed: %+v", first)
	}
	second := s.outcomeOf(s.command(append(flags, "--resume", "b")...))
	if second.code != cli.ExitNotSucceeded || second.stdout+"\n" != want.String() {
		t.Errorf("exit code %d, %s\nprinted:\n%s", second.code, second.stderr, second.stdout)
	}
	for state, want := range map[string]int{"succeeded": n - n/10, "failed": n / 10} {
		if got := strings.Count(s.run("list", "--tag", "batch=b", "--state", state, "--json", "-n", "1000"),
			`"tags"`); got != want {
			t.Errorf("%d %s, want %d", got, state, want)
		}
	}
	s.run("verify")
}

// The first signal lets what runs finish, the second ends it. Both leave the rest to a resumed run.
func TestRunManySignals(t *testing.T) {
	if ledgertest.OnPostgres(t) {
		t.Skip("--resume is for a ledger of the user's own")
	}
	t.Parallel()
	for twice, succeeded := range map[bool]int{false: 1, true: 0} {
		s := newSite(t)
		w := s.start(s.command("run", "-j", "1", "--batch", "b", "--sh", untilGo+": {}", ":::", "1", "2"))
		s.pids("begun", 1)
		w.signal(syscall.SIGINT)
		w.wantSaid("no more jobs are claimed")
		if twice {
			w.signal(syscall.SIGINT)
		} else {
			s.touch("go")
		}
		w.wantExit(cli.ExitBusy)
		left := fmt.Sprintf("%d of 2 succeeded in ", succeeded)
		if said := w.said.String(); !strings.Contains(said, left) || !strings.Contains(said, "run --resume b") {
			t.Errorf("it says %s", said)
		}
		if twice {
			s.touch("go")
		}
		if got := s.run("run", "--resume", "b"); strings.Count(got, "done") != 2-succeeded {
			t.Errorf("the rest printed %q", got)
		}
		s.run("verify")
	}
}

// A run in the foreground that is killed takes its command along, and its job fails when the lease ends.
func TestRunForegroundKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.start(s.command("run", "--lease", "8s", "--key", "k", "--sh", `echo $$ >begun; exec sleep 60`))
	command := s.pids("begun", 1)
	s.ok(w.Process.Kill())
	s.eventually("the command has ended", func() bool { return gone(command) })
	s.eventually("its job has failed", func() bool {
		s.run("sweep", "--grace", "0s")
		return strings.Contains(s.run("show", "-q", "run", "--key", "k", "--json"), `"lease_expired"`)
	})
	if got := s.run("list", "-q", "run", "--state", "failed", "--json"); strings.Count(got, `"tags"`) > 1 {
		t.Errorf("failed jobs: %s", got)
	}
	s.run("verify")
}

// On a terminal a job in the background gets a worker, which goes on when the terminal is gone, and ends.
func TestRunBackgroundStartsWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said := onTerminal(t, dir, "run", "-b", "--sh", "echo ran >ran")
	m := regexp.MustCompile(`started a worker \(pid ([0-9]+)\)`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("no worker was started: %s", said)
	}
	pid, _ := strconv.Atoi(m[1])
	own := filepath.Join(dir, "state", "jobledger", "jobs.db")
	s := site{TB: t, dir: dir, env: []string{"JOBLEDGER_DB=" + own}}
	s.eventually("the job has run", func() bool { _, err := os.Stat(s.path("ran")); return err == nil })
	if said := onTerminal(t, dir, "run", "-b", "true"); strings.Contains(said, "started") {
		t.Errorf("a second one was started: %s", said)
	}
	s.run("wait", "-q", "bg")
	if !ledgertest.Long() { // else it ends after its minute
		s.ok(syscall.Kill(pid, syscall.SIGTERM))
	}
	for end := time.Now().Add(time.Minute); ledgertest.Long() && !gone([]int{pid}) && time.Now().Before(end); {
		time.Sleep(time.Second) // between looks
	}
	s.eventually("the worker has ended", func() bool { return gone([]int{pid}) })
	s.run("verify")
}
