package commands_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// inBubble runs a test in which time passes only while all goroutines wait: hours take milliseconds. The
// clock of the ledger is the bubble's, shifted as the test says.
func inBubble(t *testing.T, test func(t *testing.T, q *queue, step func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		var lock sync.Mutex
		var by time.Duration
		q.Store.Now = func() time.Time {
			lock.Lock()
			defer lock.Unlock()
			return time.Now().Add(by)
		}
		test(t, q, func(d time.Duration) {
			lock.Lock()
			defer lock.Unlock()
			by += d
		})
	})
}

func (q *queue) many(n int) []projection.Job {
	q.T.Helper()
	jobs := make([]commands.Enqueue, n)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail"}
	}
	if _, err := q.Enqueue(q.T.Context(), "cli:test", jobs...); err != nil {
		q.T.Fatal(err)
	}
	return q.claim("w", limit(n))
}

func mustSweep(t *testing.T, w *commands.Sweeper) commands.SweepReport {
	t.Helper()
	r, err := w.Sweep(t.Context())
	if err != nil {
		t.Fatalf("sweep: %v", err)
	}
	return r
}

func TestSweepReadsTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue, _ func(time.Duration)) {
		w := &commands.Sweeper{Service: q.Service, Actor: "sweeper:test"}
		jobs := q.many(3)
		if r := mustSweep(t, w); r.Expired != 0 || r.Waiting != 0 || len(r.Reclaimed) != 0 {
			t.Errorf("nothing is over yet: %+v", r)
		}
		time.Sleep(time.Minute)
		if r := mustSweep(t, w); r.Expired != 3 || r.Waiting != 3 || r.Wait != 40*time.Second ||
			len(r.Reclaimed) != 0 {
			t.Errorf("the first look: %+v", r)
		}
		time.Sleep(39 * time.Second)
		q.do(jobs[0], beat(jobs[0].Token)) // within the grace period
		q.do(jobs[1], commands.Succeed{Token: jobs[1].Token})
		if r := mustSweep(t, w); r.Expired != 1 || r.Waiting != 1 || r.Wait != time.Second ||
			len(r.Reclaimed) != 0 {
			t.Errorf("still within the grace: %+v", r)
		}
		time.Sleep(time.Second)
		now := time.Now()
		r := mustSweep(t, w)
		if len(r.Reclaimed) != 1 || r.Reclaimed[0].ID != jobs[2].ID || r.Expired != 0 {
			t.Fatalf("after the grace: %+v", r)
		}
		all, _ := q.events(jobs[2])
		e := all[len(all)-1]
		b := e.Body.(*event.Reclaimed)
		if e.Actor != "sweeper:test" || e.Token != jobs[2].Token || e.Worker != jobs[2].Worker || e.Attempt != 1 ||
			!b.LastHeartbeat.Equal(jobs[2].ClaimedAt) || !b.LeaseUntil.Equal(jobs[2].LeaseUntil) ||
			b.Reason != event.LeaseExpired || !e.At.Equal(now) {
			t.Errorf("three facts and the claim: %+v %+v", e, b)
		}
		time.Sleep(58 * time.Second)
		if r := mustSweep(t, w); r.Expired != 0 {
			t.Errorf("renewed at 99 s: %+v", r)
		}
		time.Sleep(time.Second)
		if r := mustSweep(t, w); r.Waiting != 1 || len(r.Reclaimed) != 0 {
			t.Errorf("the renewed lease begins a new grace: %+v", r)
		}
	})
}

// keepAlive sends heartbeats for jobs every third of their lease until ctx ends, as a worker does, and
// reports lost claims.
func (q *queue) keepAlive(ctx context.Context, jobs []projection.Job, lease time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lease / 3):
		}
		var steps []commands.Op
		for _, j := range jobs {
			steps = append(steps, commands.Op{Job: j, Command: commands.Heartbeat{Token: j.Token, Lease: lease}})
		}
		out, err := q.ApplyBatch(context.WithoutCancel(ctx), "worker:w", steps)
		for errors.Is(err, ledger.ErrBusy) {
			out, err = q.ApplyBatch(context.WithoutCancel(ctx), "worker:w", steps)
		}
		if err != nil {
			q.T.Errorf("beat: %v", err)
			return
		}
		for i := range out {
			if jobs[i] = out[i].Job; out[i].Err != nil {
				q.T.Errorf("a live job was lost: %v", out[i].Err)
			}
		}
	}
}

func TestSweepHoursOfLeases(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, q *queue, step func(time.Duration)) {
		jobs := q.many(20)
		dead := jobs[15:]
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { q.keepAlive(ctx, jobs[:15], time.Minute) })
		var reclaimed []projection.Job
		group.Go(func() {
			w := commands.Sweeper{Service: q.Service, Actor: "sweeper:test"}
			w.Run(ctx, 15*time.Second, func(r commands.SweepReport, err error) {
				if err != nil {
					t.Errorf("sweep: %v", err)
				}
				reclaimed = append(reclaimed, r.Reclaimed...)
			})
		})
		for _, jump := range []time.Duration{0, time.Hour, -time.Hour, 30 * time.Second, -50 * time.Second,
			24 * time.Hour, -24 * time.Hour} {
			step(jump)
			time.Sleep(20 * time.Minute)
		}
		cancel()
		group.Wait()
		if len(reclaimed) != len(dead) {
			t.Errorf("reclaimed %d jobs, want the %d without heartbeats", len(reclaimed), len(dead))
		}
	})
}

// The clock is set back and then forward again. In between, at does not advance, so lease and heartbeat do
// not show how long a lease is.
func TestSweepClockRanBack(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue, step func(time.Duration)) {
		jobs := q.many(1)
		step(-time.Hour)
		q.do(jobs[0], beat(jobs[0].Token))
		step(time.Hour)
		w := &commands.Sweeper{Service: q.Service, Actor: "sweeper:test"}
		if r := mustSweep(t, w); r.Expired != 1 || r.Waiting != 1 {
			t.Fatalf("the lease seems to be over: %+v", r)
		}
		time.Sleep(20 * time.Second) // just before the next heartbeat
		if r := mustSweep(t, w); r.Waiting != 1 || len(r.Reclaimed) != 0 {
			t.Errorf("a live job was reclaimed: %+v", r)
		}
		q.do(jobs[0], beat(jobs[0].Token))
	})
}

// hold takes the write lock from another store for d.
func (q *queue) hold(d time.Duration) (released chan error) {
	q.T.Helper()
	other := ledgertest.OpenAt(q.T, q.Store.DSN())
	held := make(chan struct{})
	released = make(chan error)
	go func() {
		released <- other.Write(context.Background(), func(*ledger.Tx) error {
			close(held)
			time.Sleep(d)
			return nil
		})
	}()
	<-held
	return released
}

func TestSweepStartsOverAfterLateLock(t *testing.T) {
	ledgertest.OfSQLite(t)
	inBubble(t, func(t *testing.T, q *queue, _ func(time.Duration)) {
		w := &commands.Sweeper{Service: q.Service, Actor: "sweeper:test"}
		q.many(1)
		time.Sleep(time.Minute)
		mustSweep(t, w)
		time.Sleep(40 * time.Second)
		released := q.hold(300 * time.Millisecond)
		if r := mustSweep(t, w); len(r.Reclaimed) != 0 || r.Waiting != 1 || r.Wait != 40*time.Second {
			t.Errorf("heartbeats may have waited behind the same lock: %+v", r)
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
		time.Sleep(39 * time.Second)
		if r := mustSweep(t, w); len(r.Reclaimed) != 0 {
			t.Errorf("the looking did not start over: %+v", r)
		}
		time.Sleep(time.Second)
		released = q.hold(200 * time.Millisecond)
		if r := mustSweep(t, w); len(r.Reclaimed) != 1 {
			t.Errorf("a wait of 200 ms is not a reason: %+v", r)
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
	})
}

func TestSweepFrozenLockHolder(t *testing.T) {
	ledgertest.OfSQLite(t) // a server would disconnect the holder, by its own clock
	t.Parallel()
	if testing.Short() {
		t.Skip("half a million attempts to get a lock: seconds with the race detector")
	}
	inBubble(t, func(t *testing.T, q *queue, _ func(time.Duration)) {
		jobs := q.many(5)
		for i, j := range jobs {
			jobs[i] = q.do(j, commands.Heartbeat{Token: j.Token, Lease: 3 * time.Second})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { q.keepAlive(ctx, jobs, 3*time.Second) })
		busy := 0
		group.Go(func() {
			w := commands.Sweeper{Service: q.Service, Actor: "sweeper:test"}
			w.Run(ctx, time.Second, func(r commands.SweepReport, err error) {
				if errors.Is(err, ledger.ErrBusy) {
					busy++
				} else if err != nil || len(r.Reclaimed) > 0 {
					t.Errorf("%+v, %v", r, err)
				}
			})
		})
		time.Sleep(10 * time.Second)
		if err := <-q.hold(40 * time.Second); err != nil { // the sweeper stops waiting for the lock after 30 s
			t.Error(err)
		}
		time.Sleep(time.Minute)
		cancel()
		group.Wait()
		if busy == 0 {
			t.Errorf("the sweeper never met the lock: this tests nothing")
		}
	})
}

func TestSweepInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue, _ func(time.Duration)) {
		q.many(250)
		time.Sleep(time.Minute)
		w := &commands.Sweeper{Service: q.Service, Actor: "sweeper:test", Batch: 1000, Grace: new(time.Duration)}
		if r := mustSweep(t, w); len(r.Reclaimed) != 250 || r.Expired != 0 {
			t.Errorf("reclaimed %d, %d are left", len(r.Reclaimed), r.Expired)
		}
		// each transaction reads its clock once, and transactions are separated by a pause
		batches := make(map[time.Time]int)
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			for e, err := range tx.Events(t.Context(), ledger.Filter{Kinds: []event.Kind{event.KindReclaimed}}) {
				if err != nil {
					return err
				}
				batches[e.At]++
			}
			return nil
		})
		if err != nil || len(batches) != 3 {
			t.Errorf("got batches %v, %v, want 3", batches, err)
		}
		for _, n := range batches {
			if n > 100 {
				t.Errorf("a batch of %d", n)
			}
		}
	})
}

// damage runs SQL on the ledger's file without the program.
func (q *queue) damage(statements ...string) {
	q.T.Helper()
	db, err := sql.Open("sqlite", "file:"+q.Store.Path()+"?_pragma=busy_timeout(5000)")
	if err != nil {
		q.T.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(q.T.Context(), s); err != nil {
			q.T.Fatalf("%s: %v", s, err)
		}
	}
}

func TestSweepSkipsDamagedRows(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	q := newQueue(t)
	jobs := q.many(150)
	bad := map[string]string{
		string(jobs[3].ID):  `UPDATE jobs SET seq = 1 WHERE id = '%s'`, // this event exists
		string(jobs[70].ID): `UPDATE jobs SET more = 'not JSON' WHERE id = '%s'`,
		string(jobs[71].ID): `UPDATE jobs SET worker = 99 WHERE id = '%s'`,
	}
	for id, statement := range bad {
		q.damage(fmt.Sprintf(statement, id))
	}

	// Heartbeats: the other rows of a transaction with a bad row keep their leases.
	q.Now = q.Now.Add(30 * time.Second)
	var steps []commands.Op
	for _, j := range jobs[:100] {
		j.Seq = max(j.Seq, 2)
		steps = append(steps, commands.Op{Job: projection.Job{ID: j.ID}, Command: beat(j.Token)})
	}
	out, err := q.ApplyBatch(t.Context(), "worker:w", steps)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if _, isBad := bad[string(jobs[i].ID)]; isBad != (o.Err != nil) {
			t.Errorf("job %d: %v", i, o.Err)
		}
	}

	q.Now = q.Now.Add(10 * time.Minute)
	w := commands.Sweeper{Service: q.Service, Actor: "sweeper:test", Grace: new(time.Duration)}
	for range 2 {
		r, err := w.Sweep(t.Context())
		if err == nil || r.Expired != 3 {
			t.Fatalf("got %+v, %v, want the bad rows left over and reported", r, err)
		}
		for id := range bad {
			if !strings.Contains(err.Error(), id) {
				t.Errorf("%s is not named in %v", id, err)
			}
		}
	}
	if got := q.Tail(); got != 2*150+97+147 {
		t.Errorf("%d events: not all others were reclaimed", got)
	}
	if report, err := q.Rebuild(t.Context(), "cli:test"); err != nil || report.Changed != 3 {
		t.Fatalf("rebuild: %+v, %v", report, err)
	}
	if r, err := w.Sweep(t.Context()); err != nil || len(r.Reclaimed) != 3 {
		t.Errorf("after a rebuild: %+v, %v", r, err)
	}
}

// A sweep empties the -wal file that a long read let grow, once the read has ended.
func TestSweepTrimsTheWAL(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	s := &commands.Service{Store: openFast(t)}
	sweeper := &commands.Sweeper{Service: s, Actor: "sweeper:test"}
	size := func() int64 {
		info, err := os.Stat(s.Store.Path() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		if _, err := tx.Tail(t.Context()); err != nil {
			return err
		}
		for range 20 {
			_, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail",
				Payload: make([]byte, commands.MaxPayload)})
			if err != nil {
				return err
			}
		}
		mustSweep(t, sweeper)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size() < 16<<20 {
		t.Fatalf("next to a reader the -wal file has only %d bytes", size())
	}
	mustSweep(t, sweeper)
	if size() != 0 {
		t.Errorf("after the read the -wal file has %d bytes", size())
	}
	wantClean(t, s.Store)
}
