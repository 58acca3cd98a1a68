//go:build unix

package ledger_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// stoppedHolder starts a process that holds the write queue's lock of s and stops it with SIGSTOP. end
// continues it and waits for its end.
func stoppedHolder(t *testing.T, s *ledger.Store) (end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEDGER_TEST_QUEUE="+s.Path())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return end
}

// contend makes s wait for SQLite's lock while it writes, and returns for how long.
func contend(t *testing.T, s *ledger.Store) time.Duration {
	t.Helper()
	other := plain(t, s.Path())
	mustExec(t, other, `BEGIN IMMEDIATE`)
	written := make(chan error, 1)
	start := time.Now()
	go func() {
		written <- s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	}()
	time.Sleep(20 * time.Millisecond) // the time that is measured
	mustExec(t, other, `ROLLBACK`)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// The holder continues only when end is called, so a write that waited for it would never return. The wait is
// bounded at half a second; the bound here only separates "bounded" from "for ever" on a slow machine.
func TestWriteQueueSurvivesStoppedHolder(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	s := open(t)
	end := stoppedHolder(t, s)
	for range 2 {
		if took := contend(t, s); took > 20*time.Second {
			t.Errorf("a write took %s", took)
		}
	}
	for range 10 {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	}
	end()
	contend(t, s)
}

func TestWriteQueueIsFairBetweenProcesses(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.New(t)
	stores := []*ledger.Store{openAt(t, dsn)}
	for range 2 {
		stores = append(stores, ledgertest.OpenAt(t, dsn)) // locks separately, as another process does
	}
	for range 5 { // a slow machine does not delay a process in every round
		var mu sync.Mutex
		var turns []int // the index of the store of each write, in order
		var wg sync.WaitGroup
		until := time.Now().Add(500 * time.Millisecond)
		for i, s := range stores {
			wg.Go(func() {
				for time.Now().Before(until) {
					err := s.Write(t.Context(), func(tx *ledger.Tx) error {
						mu.Lock()
						turns = append(turns, i)
						mu.Unlock()
						return note(t.Context(), tx, "a")
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		shares := make([]int, len(stores))
		for _, i := range turns {
			shares[i]++
		}
		if 10*slices.Min(shares) >= slices.Max(shares) { // on an idle machine they are within a factor of 1.1
			return
		}
		t.Logf("shares %v", shares)
	}
	t.Error("one of them starves")
}

func TestWriteQueueIsNotMadeForOneWriter(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := open(t)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	if _, err := os.Stat(s.Path() + ".bell/gate"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the write queue was made: %v", err)
	}
}
