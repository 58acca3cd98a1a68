package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// limitPages limits the pages of the ledger's file to n. 1 means that it cannot grow, as on a full disk.
func limitPages(t testing.TB, s *ledger.Store, n string) {
	t.Helper()
	err := ledger.ErrFull
	for errors.Is(err, ledger.ErrFull) { // another write of the same transaction has no space
		err = s.Write(context.Background(), func(tx *ledger.Tx) error {
			_, err := tx.Exec(`PRAGMA max_page_count = ` + n)
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// logged is the log of a worker.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// Each transaction reads the clock once. The test counts how often the worker tries.
func TestWorkerWaitsOutFullDisk(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		store := ledgertest.Open(t)
		var tries atomic.Int64
		store.Now = func() time.Time {
			tries.Add(1)
			return time.Now()
		}
		service := &commands.Service{Store: store}
		first, second := one(t, service, commands.Enqueue{}), one(t, service, commands.Enqueue{})
		full := make(chan struct{})
		w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
			<-full
			return make([]byte, 1<<20), nil // needs space
		})
		log := new(logged)
		w.SweepEvery, w.Lease, w.Log = -1, time.Hour, slog.New(slog.NewTextHandler(log, nil))
		var run sync.WaitGroup
		var stats worker.Stats
		var err error
		run.Go(func() { stats, err = w.Run(context.Background()) })
		synctest.Wait()
		limitPages(t, store, "1")
		close(full)
		before := tries.Load()
		time.Sleep(time.Minute)
		if n := tries.Load() - before; n < 20 || n > 120 {
			t.Errorf("tried %d times in a minute, want once a second or two", n)
		}
		if n := log.count("disk full"); n < 1 || n > 3 {
			t.Errorf("logged %d times in a minute that the disk is full:\n%s", n, &log.text)
		}
		limitPages(t, store, "1000000")
		run.Wait()
		if err != nil || stats.Succeeded != 2 || log.count("the ledger answers again") != 1 {
			t.Errorf("when there was room: %+v, %v:\n%s", stats, err, &log.text)
		}
		for _, j := range []projection.Job{first, second} {
			if got := strings.Join(kinds(t, service, j.N), " "); got != "enqueued claimed succeeded" {
				t.Errorf("events: %s", got)
			}
		}
		commandstest.Verify(t, store)
	})
}

func TestWorkerAbortedOnFullDiskGivesUp(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		store := ledgertest.Open(t)
		service := &commands.Service{Store: store}
		j := one(t, service, commands.Enqueue{})
		w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
			limitPages(t, store, "1")
			return make([]byte, 1<<20), nil
		})
		w.SweepEvery, w.Lease = -1, time.Hour
		ctx, stop := context.WithCancel(context.Background())
		time.AfterFunc(time.Minute, stop)
		began := time.Now()
		stats, err := w.Run(ctx)
		if !errors.Is(err, ledger.ErrFull) || stats.Lost != 1 {
			t.Errorf("got %+v, %v", stats, err)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("it went on for %s", took)
		}
		limitPages(t, store, "1000000")
		if got := strings.Join(kinds(t, service, j.N), " "); got != "enqueued claimed" {
			t.Errorf("events: %s", got)
		}
		commandstest.Verify(t, store)
	})
}

// breakRow makes a job's row unreadable.
func breakRow(t testing.TB, s *commands.Service, j projection.Job) {
	t.Helper()
	err := s.Store.Write(context.Background(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE jobs SET more = '{' WHERE n = ?`, j.N)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWorkerNamesDamagedJobAndRunsOthers(t *testing.T) {
	ledgertest.OfSQLite(t)
	for name, drain := range map[string]bool{"drain": true, "for good": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &commands.Service{Store: ledgertest.Open(t)}
				bad := one(t, service, commands.Enqueue{})
				one(t, service, commands.Enqueue{})
				one(t, service, commands.Enqueue{})
				breakRow(t, service, bad)
				var worked atomic.Int64
				w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
					worked.Add(1)
					return nil, nil
				})
				log := new(logged)
				w.Drain, w.SweepEvery, w.Log = drain, -1, slog.New(slog.NewTextHandler(log, nil))
				var run sync.WaitGroup
				var stats worker.Stats
				var err error
				run.Go(func() { stats, err = w.Run(context.Background()) })
				synctest.Wait()
				if worked.Load() != 2 {
					t.Errorf("%d jobs were done after the damaged one, want 2", worked.Load())
				}
				if !drain {
					time.Sleep(time.Minute)
					one(t, service, commands.Enqueue{})
					synctest.Wait()
					time.Sleep(time.Minute)
					if n := log.count(string(bad.ID)); worked.Load() != 3 || n < 2 || n > 6 {
						t.Errorf("%d jobs done, want 3; the damaged one logged %d times in two minutes:\n%s",
							worked.Load(), n, &log.text)
					}
					w.Stop()
				}
				run.Wait()
				var damaged *claims.DamagedJobError
				switch {
				case drain && (!errors.As(err, &damaged) || damaged.Job != bad.ID):
					t.Errorf("got %v, want an error about job %s", err, bad.ID)
				case !drain && err != nil:
					t.Errorf("it ended with %v", err)
				}
				if stats.Lost != 0 || stats.Succeeded != int(worked.Load()) {
					t.Errorf("got %+v", stats)
				}
				if _, err := service.Rebuild(context.Background(), "cli:test"); err != nil {
					t.Fatal(err)
				}
				commandstest.Verify(t, service.Store)
			})
		})
	}
}
