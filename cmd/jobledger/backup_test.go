//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// traffic writes to a ledger from many goroutines until stop: it enqueues, claims, extends, ends, cancels and
// erases jobs. tail is a pos up to which every event was acknowledged.
type traffic struct {
	tail atomic.Int64
	quit atomic.Bool
	done sync.WaitGroup
}

func (s site) traffic(service *commands.Service, callers int) *traffic {
	s.Helper()
	t := new(traffic)
	for n := range callers {
		t.done.Go(func() {
			w := event.Worker{Name: fmt.Sprint("w", n), Boot: fmt.Sprint("B", n)}
			for !t.quit.Load() {
				if err := t.job(service, w); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	return t
}

func (t *traffic) stop() {
	t.quit.Store(true)
	t.done.Wait()
}

// job enqueues a job and does something with one that is queued.
func (t *traffic) job(service *commands.Service, w event.Worker) error {
	ctx := context.Background()
	e := commands.Enqueue{Queue: "mail", Payload: make([]byte, rand.N(3000))}
	if _, err := service.Enqueue(ctx, "cli:test", e); err != nil {
		return err
	}
	jobs, err := service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Worker: w})
	if err != nil || len(jobs) == 0 {
		return err
	}
	j := jobs[0]
	ends := []commands.Command{commands.Succeed{Token: j.Token, Result: make([]byte, rand.N(2000))},
		commands.Release{Token: j.Token},
		commands.Fail{Token: j.Token, Code: "x", NoRetry: true}, commands.Cancel{}}
	for _, c := range []commands.Command{commands.Heartbeat{Token: j.Token, Lease: time.Minute},
		ends[rand.N(len(ends))]} {
		if _, err := service.Apply(ctx, "worker:"+w.Name, j.ID, c); err != nil &&
			!errors.Is(err, commands.ErrConflict) {
			return err
		}
	}
	return service.Store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx) // everything up to it was acknowledged, or will be
		for old := t.tail.Load(); tail > old && !t.tail.CompareAndSwap(old, tail); old = t.tail.Load() {
		}
		return err
	})
}

// beginning returns an error unless copy is an intact ledger whose events and bodies are a prefix of the
// ledger's, up to at least the event at.
func (s site) beginning(copy, all string, at int64) error {
	if got := s.ran("verify", "--db", copy); got.code != cli.ExitOK {
		return fmt.Errorf("verify: %s%s", got.stdout, got.stderr)
	}
	lines := s.ran("export", "--db", copy)
	switch n := int64(strings.Count(lines.stdout, "\n")); {
	case lines.code != cli.ExitOK:
		return fmt.Errorf("export: %s", lines.stderr)
	case !strings.HasPrefix(all, lines.stdout):
		return fmt.Errorf("its %d events are not the first ones", n)
	case n < at:
		return fmt.Errorf("it has %d events, and %d had been acknowledged before", n, at)
	}
	return nil
}

// A backup contains everything up to one event, whatever is written meanwhile.
func TestBackupOfLedgerInUse(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const naive = 6
	rounds := ledgertest.Size(2, 3, 5)
	tails := make(map[string]int64)
	s.withService(0, func(_ context.Context, service *commands.Service) {
		traffic := s.traffic(service, 8)
		for n := range rounds {
			s.eventually("some are acknowledged", func() bool { return traffic.tail.Load() > int64(n+1)*50 })
			name := fmt.Sprintf("copy-%d.db", n)
			tails[name] = traffic.tail.Load()
			s.run("backup", name)
		}
		// A copy made by cp must be recognised as no backup, unless everything was in the main file at each of
		// these moments: there is something new before each.
		for n := range naive {
			before := traffic.tail.Load()
			s.eventually("more is acknowledged", func() bool { return traffic.tail.Load() > before })
			name := fmt.Sprintf("naive-%d.db", n)
			tails[name] = traffic.tail.Load()
			s.ok(exec.Command("cp", s.path(db), s.path(name)).Run())
		}
		traffic.stop()
	})
	all := s.run("export") + "\n"
	torn := 0
	for name, at := range tails {
		err := s.beginning(name, all, at)
		switch {
		case strings.HasPrefix(name, "naive") && err != nil:
			torn++
		case err != nil && !strings.HasPrefix(name, "naive"):
			t.Errorf("%s: %v", name, err)
		}
	}
	if torn == 0 {
		t.Errorf("all %d naive copies pass for backups", naive)
	}
	s.run("verify")
	if left := s.tempFiles(); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
}

func TestBackupInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(0, invoke("enqueue", "-q", "mail", "x"))
			backup := r.start(r.cmd(invoke("backup", "b.db").dyingAt("vacuumed=5s")))
			r.eventually("it has begun", func() bool { return len(r.tempFiles()) > 0 })
			backup.signal(sig)
			backup.wantExit(cli.ExitUnexpected)
			backup.wantSaid("interrupted; there is no b.db")
			if _, err := os.Lstat(r.path("b.db")); err == nil || len(r.tempFiles()) > 0 {
				t.Errorf("b.db: %v; there is %q", err, r.tempFiles())
			}
			r.history(db)
		})
	}
}

// inSmallPlace runs a shell script in a folder "small" that has space for size. It skips the test if no file
// system can be mounted.
func (s site) inSmallPlace(size, script string) string {
	s.Helper()
	s.ok(os.MkdirAll(s.path("small"), 0o700))
	words := []string{"-m"}
	if os.Getuid() != 0 {
		words = []string{"-Urm"}
	}
	if out, err := exec.Command("unshare", append(words, "mount", "-t", "tmpfs", "-o", "size=64k", "none",
		s.path("small"))...).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" && os.Getuid() == 0 && runtime.GOOS == "linux" {
			s.Fatalf("no file system of its own: %v: %s", err, out)
		}
		s.Skipf("no file system of its own: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", append(words, "sh", "-c",
		`mount -t tmpfs -o size=`+size+` none small && `+script)...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// A copy that does not fit on the disk is removed.
func TestBackupAndRestoreOnFullDisk(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	for range 20 {
		s.enqueue(strings.Repeat("x", 20_000))
	}
	s.run("backup", "b.db")
	got := s.inSmallPlace("300k", `
		jobledger backup small/copy.db; echo "backup $?"; ls -A small
		jobledger restore b.db --db small/jobs.db; echo "restore $?"; ls -A small
		jobledger enqueue -q mail --db small/old.db x >/dev/null
		jobledger restore b.db --force --db small/old.db; echo "restore $?"
		jobledger verify --db small/old.db; ls -A small
		jobledger doctor --db small/old.db | grep -o 'D08  problem only .* free'`)
	want := []string{"ledger: disk full", "backup 75", "ledger: disk full", "restore 75", "ledger: disk full",
		"restore 75",
		"ok: 1 event of 1 job", "old.db", "D08  problem only "}
	rest := got
	for _, part := range want {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("it lacks %q:\n%s", part, got)
		}
		rest = after
	}
	if strings.Contains(got, ".copy") || strings.Contains(got, "\ncopy") || strings.Contains(got, "\njobs") ||
		strings.Contains(got, "\n.old") {
		t.Errorf("something is left:\n%s", got)
	}
	s.run("verify")
}
