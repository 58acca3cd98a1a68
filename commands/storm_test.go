package commands_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	limits "jobledger/projection/limit"
)

const (
	stormFile  = "JOBLEDGER_TEST_STORM"       // the ledger, if this process is part of the storm
	stormEpoch = "JOBLEDGER_TEST_STORM_EPOCH" // unix microseconds: the start of the fast clock
	stormSpeed = 20
	// half a second of real time: enough for one iteration even on a slow machine
	stormLease = 10 * time.Second
)

// TestStorm runs 4 processes with 4 goroutines on 2 stores each, which claim, beat, finish, fail, forget and
// sweep the same jobs. Their common clock runs 20 times as fast, so leases expire soon. In the end, each job
// has succeeded exactly once.
func TestStorm(t *testing.T) {
	if path := os.Getenv(stormFile); path != "" {
		storm(t, path)
		return
	}
	jobs := ledgertest.Size(600, 600, 2000)
	s := ledgertest.Open(t)
	service := &commands.Service{Store: s}
	batch := make([]commands.Enqueue, jobs)
	for i := range batch {
		batch[i] = commands.Enqueue{Queue: fmt.Sprint("q", i%3), Priority: i % 2, MaxAttempts: 1_000_000,
			Payload: fmt.Append(nil, i)}
		if i%3 == 1 {
			batch[i].Group = fmt.Sprint("g", i%7)
		}
	}
	begin := time.Now()
	s.Now = func() time.Time { return begin }
	if _, err := service.Enqueue(t.Context(), "cli:test", batch...); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]limits.Spec{"q1": {PerGroup: 2}, "q2": {Running: 5}} {
		if _, err := service.Limit(t.Context(), "cli:test", name, to, ""); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestStorm$", "-test.count=1",
			"-test.timeout=10m")
		cmd.Env = append(os.Environ(), stormFile+"="+s.DSN(), stormEpoch+"="+strconv.FormatInt(begin.UnixMicro(),
			10))
		group.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	group.Wait()

	succeeded, kinds := make(map[event.JobID]int), make(map[string]int)
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			if kinds[e.Kind().String()]++; e.Kind() == event.KindSucceeded {
				succeeded[e.Job]++
			}
		}
		v, err := audit.Verify(t.Context(), tx, nil)
		for _, f := range v.Findings {
			t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(succeeded) != jobs {
		t.Errorf("%d of %d jobs succeeded", len(succeeded), jobs)
	}
	for job, n := range succeeded {
		if n != 1 {
			t.Errorf("job %s succeeded %d times", job, n)
		}
	}
	t.Log(kinds)
	for _, kind := range []string{"heartbeat", "failed", "released", "reclaimed", "refused"} {
		if kinds[kind] == 0 {
			t.Errorf("nothing was %s: the storm was a breeze", kind)
		}
	}
}

// storm is one of these processes.
func storm(t *testing.T, path string) {
	us, err := strconv.ParseInt(os.Getenv(stormEpoch), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.UnixMicro(us)
	clock := func() time.Time { return begin.Add(stormSpeed * time.Since(begin)) }
	ctx := t.Context()
	var group sync.WaitGroup
	for i := range 2 {
		store, err := ledger.Open(ctx, ledgertest.Relaxed(path))
		if err != nil {
			t.Fatal(err)
		}
		store.Now = clock
		defer store.Close()
		service := &commands.Service{Store: store}
		done := make(chan struct{})
		var clients sync.WaitGroup
		for k := range 2 {
			clients.Go(func() {
				if err := stormClient(ctx, service, fmt.Sprint("w", os.Getpid(), "-", i, "-", k)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Go(func() {
			clients.Wait()
			close(done)
		})
		group.Go(func() { // sweeps all the time
			w := commands.Sweeper{Service: service, Actor: "sweeper:storm", Grace: ref(5 * time.Millisecond),
				Pause: time.Millisecond}
			for {
				if _, err := w.Sweep(ctx); err != nil {
					t.Error(err)
				}
				select {
				case <-done:
					return
				case <-time.After(10 * time.Millisecond): // the interval of sweeping; nothing waits for it
				}
			}
		})
	}
	group.Wait()
}

// stormClient works until no job is open.
func stormClient(ctx context.Context, s *commands.Service, name string) error {
	r := commands.ClaimRequest{Queues: []string{"q0", "q1", "q2"}, Worker: event.Worker{Name: name, Boot: name,
		PID: os.Getpid()}, Lease: stormLease, Limit: 4}
	var steps []commands.Op
	var zombies []projection.Job
	for {
		outcomes, jobs, err := s.ApplyAndClaim(ctx, "worker:"+name, steps, r)
		if err != nil {
			return err
		}
		for i, o := range outcomes { // a lost lease is expected; everything else must have worked
			if o.Err != nil && !errors.Is(o.Err, commands.ErrLeaseLost) {
				return fmt.Errorf("%T: %w", steps[i].Command, o.Err)
			}
		}
		steps = steps[:0]
		for _, j := range jobs {
			switch rand.IntN(20) {
			case 0: // forgotten, and finished when it is too late
				zombies = append(zombies, j)
			case 1:
				steps = append(steps, commands.Op{Job: j, Command: commands.Fail{Token: j.Token,
					RetryIn: ref(time.Duration(0))}})
			case 2:
				steps = append(steps, commands.Op{Job: j, Command: commands.Release{Token: j.Token}})
			case 3, 4, 5: // both from the same copy
				steps = append(steps, commands.Op{Job: j, Command: commands.Heartbeat{Token: j.Token, Lease: stormLease}})
				fallthrough
			default:
				steps = append(steps, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token, Result: j.Payload}})
			}
		}
		if len(zombies) > 0 && s.Store.Now().After(remembered(zombies[0])) {
			j := zombies[0]
			zombies = zombies[1:]
			_, err := s.Apply(ctx, "worker:"+name, j.ID, commands.Succeed{Token: j.Token, Result: []byte("late")})
			if err != nil && !errors.Is(err, commands.ErrLeaseLost) {
				return fmt.Errorf("zombie: %w", err)
			}
		}
		if len(jobs) > 0 || len(steps) > 0 {
			continue
		}
		open := 0
		err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
			rows, err := tx.Query(ctx, `SELECT count(*) FROM jobs WHERE state < ?`, int(event.SucceededState))
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			return rows.Scan(&open)
		})
		if err != nil || open == 0 && len(zombies) == 0 {
			return err
		}
		time.Sleep(time.Millisecond) // until a lease expires or a run_at has come
	}
}

// remembered returns when a forgotten job is finished: before, while or after other clients reclaim it.
func remembered(j projection.Job) time.Time {
	return j.LeaseUntil.Add(time.Duration(j.N%3-1) * time.Second)
}

// A storm in one process under the race detector, with stores that share the file.
func TestStormInOneProcess(t *testing.T) {
	t.Parallel()
	s := ledgertest.Open(t)
	begin := time.Now()
	clock := func() time.Time { return begin.Add(stormSpeed * time.Since(begin)) }
	s.Now = clock
	service := &commands.Service{Store: s}
	batch := make([]commands.Enqueue, 200)
	for i := range batch {
		batch[i] = commands.Enqueue{Queue: "q0", MaxAttempts: 1_000_000}
	}
	if _, err := service.Enqueue(t.Context(), "cli:test", batch...); err != nil {
		t.Fatal(err)
	}
	other := ledgertest.OpenAt(t, s.DSN())
	other.Now = clock
	stop := make(chan struct{})
	var clients, sweeping sync.WaitGroup
	sweeping.Go(func() {
		w := commands.Sweeper{Service: service, Actor: "sweeper:storm", Grace: ref(time.Millisecond),
			Pause: time.Millisecond}
		for {
			if _, err := w.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	for i := range 16 {
		hand := service
		if i%2 == 1 {
			hand = &commands.Service{Store: other}
		}
		clients.Go(func() {
			if err := stormClient(t.Context(), hand, fmt.Sprint("w", i)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	close(stop)
	sweeping.Wait()
	(&queue{&commandstest.Scenario{Service: service, T: t}}).Verify()
}
