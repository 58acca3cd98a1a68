package worker_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// skewed is another process on a ledger, in a synctest bubble, with its own clock that can be set.
type skewed struct {
	*commands.Service
	ahead atomic.Int64
	read  atomic.Int64 // number of readings
}

func newSkewed(t testing.TB, path string) *skewed {
	s := &skewed{Service: &commands.Service{Store: ledgertest.OpenAt(t, path)}}
	s.Store.Now = func() time.Time {
		if s.read.Add(1) == 20_000 {
			panic("the clock is read all the time: no time passes any more")
		}
		return time.Now().Add(time.Duration(s.ahead.Load()))
	}
	return s
}

// Clocks jump, and differ from each other, by seconds or hours: a live worker sends its heartbeats and loses
// no job.
func TestWorkerClockJumpsLoseNoJob(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 0))
			working := newSkewed(t, ledgertest.Open(t).DSN())
			sweeping := newSkewed(t, working.Store.DSN())
			jobs := []projection.Job{
				one(t, working.Service, commands.Enqueue{}),
				one(t, working.Service, commands.Enqueue{MaxRuntime: 100 * time.Hour}),
			}
			done := make(chan struct{})
			w := newWorker(working.Service, func(ctx context.Context, _ projection.Job) ([]byte, error) {
				select {
				case <-ctx.Done():
					t.Errorf("seed %d: a live job was stopped: %v", seed, context.Cause(ctx))
				case <-done:
				}
				return nil, nil
			})
			w.Slots, w.MaxJobs = len(jobs), len(jobs)
			ctx, cancel := context.WithCancel(t.Context())
			var group sync.WaitGroup
			group.Go(func() {
				if stats, err := w.Run(t.Context()); err != nil || stats.Succeeded != len(jobs) {
					t.Errorf("seed %d: run: %+v, %v", seed, stats, err)
				}
			})
			group.Go(func() {
				s := commands.Sweeper{Service: sweeping.Service, Actor: "sweeper:other"}
				s.Run(ctx, 5*time.Second, func(r commands.SweepReport, err error) {
					if len(r.Reclaimed) > 0 || err != nil {
						t.Errorf("seed %d: reclaimed %+v, %v", seed, r.Reclaimed, err)
					}
				})
			})
			jumps := ledgertest.Size(4, 8, 12)
			for range jumps {
				time.Sleep(time.Duration(30+dice.IntN(200)) * time.Second)
				clocks := []*skewed{working, sweeping}
				dice.Shuffle(2, func(i, k int) { clocks[i], clocks[k] = clocks[k], clocks[i] })
				for _, h := range clocks[:1+dice.IntN(2)] {
					h.ahead.Store(int64(jump(dice)))
				}
			}
			close(done)
			cancel()
			group.Wait()
			for _, j := range jobs {
				got := kinds(t, working.Service, j.N)
				beats := len(got) - 3
				got = slices.DeleteFunc(got, func(k string) bool { return k == event.KindHeartbeat.String() })
				if !slices.Equal(got, []string{"enqueued", "claimed", "succeeded"}) || beats < jumps {
					t.Errorf("seed %d: %d beats; %q", seed, beats, got)
				}
			}
			commandstest.Verify(t, working.Store)
		})
	}
}

// jump returns the error of a clock: zero, a part of a lease, a lease, or hours.
func jump(dice *rand.Rand) time.Duration {
	sizes := []time.Duration{0, 10 * time.Second, 50 * time.Second, time.Minute, time.Hour, 25 * time.Hour}
	by := sizes[dice.IntN(len(sizes))]
	if dice.IntN(2) == 0 {
		return -by
	}
	return by
}

// The job of a worker that dies while its clock is wrong is reclaimed once the clocks agree.
func TestSweeperFindsDeadWorkerAfterClockSkew(t *testing.T) {
	ledgertest.OfSQLite(t)
	for _, wrong := range []time.Duration{-time.Hour, 0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			dying := newSkewed(t, ledgertest.Open(t).DSN())
			sweeping := newSkewed(t, dying.Store.DSN())
			one(t, dying.Service, commands.Enqueue{})
			dying.ahead.Store(int64(wrong))
			r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "dead", Boot: "B"}}
			if jobs, err := dying.Claim(t.Context(), r); err != nil || (len(jobs) == 0) != (wrong < 0) {
				t.Fatalf("claimed %+v, %v", jobs, err) // by a slow clock, it is not due
			}
			if wrong < 0 {
				return
			}
			s := commands.Sweeper{Service: sweeping.Service, Actor: "sweeper:other"}
			began := time.Now()
			for reclaimed := 0; reclaimed == 0; time.Sleep(5 * time.Second) {
				r, err := s.Sweep(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				reclaimed = len(r.Reclaimed)
			}
			if took := time.Since(began); took > wrong+2*time.Minute {
				t.Errorf("ahead by %v, it took %v", wrong, took)
			}
			commandstest.Verify(t, dying.Store)
		})
	}
}
