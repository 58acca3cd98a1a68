package commands_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// twin is a ledger that does the same as another one, with a clock, ids and salts of its own that agree.
type twin struct {
	*commands.Service
	ids   int
	now   time.Time
	held  []projection.Job
	plain bool // nearly all jobs and ends are normal
}

func newTwin(t *testing.T, dsn string) *twin {
	w := &twin{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	store := ledgertest.OpenAt(t, dsn)
	store.Now = func() time.Time { return w.now }
	w.Service = &commands.Service{Store: store,
		NewID:   func() string { w.ids++; return fmt.Sprintf("01ARZ3NDEKTSV4RRFF%08d", w.ids) },
		NewSalt: func(salt []byte) { clear(salt) },
	}
	t.Cleanup(func() { commandstest.Verify(t, store) })
	return w
}

// history returns all events, and all jobs that are not archived.
func (w *twin) history(t *testing.T) (events []event.Event) {
	t.Helper()
	err := w.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// step does something at random, and returns what it was answered.
func (w *twin) step(t *testing.T, r *rand.Rand) string {
	ctx := context.WithoutCancel(t.Context())
	w.now = w.now.Add(time.Duration(r.IntN(3)) * time.Millisecond)
	if r.IntN(50) == 0 {
		w.now = w.now.Add(-time.Millisecond)
	}
	switch r.IntN(12) {
	case 0, 1:
		var jobs []commands.Enqueue
		for range 1 + r.IntN(8) {
			e := commands.Enqueue{Queue: "mail", Payload: make([]byte, r.IntN(20))}
			rare := r.IntN(24)
			if w.plain && r.IntN(50) != 0 {
				rare = 10 * min(rare, 1) // with tags, or without anything
			}
			switch rare {
			case 0:
				e.Tags = map[string]string{"a": "b", "c": `"{}`}
			case 1:
				e.MaxRuntime = time.Minute
			case 2:
				e.Priority = 7
			case 3:
				e.Queue = "other"
			case 4:
				at := w.now.Add(5 * time.Millisecond)
				e.RunAt = at
			case 5:
				e.Key, e.UniqueWhile = fmt.Sprint(r.IntN(5)), event.WhileQueued
			case 6:
				e.Key = fmt.Sprint("k", r.IntN(50))
			case 7:
				e.Group = "g"
			case 8:
				e.Version = "v2"
			}
			jobs = append(jobs, e)
		}
		answers, err := w.Enqueue(ctx, "cli:test", jobs...)
		return fmt.Sprint(answers, err)
	case 2:
		if r.IntN(6) == 0 && (!w.plain || r.IntN(10) == 0) {
			_, err := w.Pause(ctx, "cli:test", "mail", "")
			return fmt.Sprint(err)
		}
		_, err := w.Resume(ctx, "cli:test", "mail", "")
		return fmt.Sprint(err)
	}
	var ops []commands.Op
	var kept []projection.Job
	for _, j := range w.held {
		var c commands.Command
		k := r.IntN(40)
		if w.plain && k >= 8 && k < 12 && r.IntN(20) != 0 {
			k = 39
		}
		switch {
		case k < 8:
			kept = append(kept, j)
			continue
		case k == 8:
			c = commands.Fail{Token: j.Token, Detail: "d"}
		case k == 9:
			c = commands.Release{Token: j.Token}
		case k == 10:
			c = commands.Heartbeat{Token: j.Token, Lease: time.Minute}
			kept = append(kept, j)
		case k == 11:
			c = commands.Succeed{Token: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
		case k < 16:
			c = commands.Succeed{Token: j.Token, ExitCode: new(0)}
		case k < 22:
			c = commands.Succeed{Token: j.Token, Result: []byte(`{"n":1}`)}
		default:
			c = commands.Succeed{Token: j.Token}
		}
		ops = append(ops, commands.Op{Job: j, Command: c})
	}
	if len(ops) > 0 && r.IntN(20) == 0 {
		ops = append(ops, ops[0])
	}
	lease := time.Minute
	if r.IntN(3) == 0 {
		lease = 30 * time.Second
	}
	request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w"), Limit: 1 + r.IntN(6),
		Lease: lease}
	if r.IntN(20) == 0 {
		request.Worker = worker("another")
	}
	results, jobs, err := w.ApplyAndClaim(ctx, "worker:w", ops, request)
	for i, result := range results {
		for k := range kept {
			if kept[k].ID == result.Job.ID && result.Err == nil && ops[i].Job.ID == result.Job.ID {
				kept[k] = result.Job
			}
		}
	}
	w.held = append(kept, jobs...)
	text := fmt.Sprintf("%+v %v", jobs, err)
	for _, result := range results {
		text += fmt.Sprintf("\n%+v %v", result.Job, result.Err)
	}
	return text
}

// The same turns write the same with bursts, on PostgreSQL, and without, on SQLite. A turn is not a burst
// where what is known of the lanes has become old meanwhile, so that how many there are depends on the
// machine: where most could be one, there are steps until some were.
func TestPostgresBurstEqualsWrite(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ledgertest.Size(2, 4, 12)) {
		fast, slow := newTwin(t, ledgertest.Postgres(t)), newTwin(t, t.TempDir()+"/jobs.db")
		fast.plain, slow.plain = seed%2 == 0, seed%2 == 0
		a, b := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 0))
		bursts := func() int64 { done, _ := fast.Store.Bursts(); return done }
		for i := 0; i < 150 || fast.plain && bursts() < 10; i++ {
			if i == 5000 {
				t.Fatalf("seed %d: %d bursts in %d steps", seed, bursts(), i)
			}
			if x, y := fast.step(t, a), slow.step(t, b); x != y {
				t.Fatalf("seed %d, step %d:\n%s\nwithout bursts:\n%s", seed, i, x, y)
			}
		}
		x, y := fast.history(t), slow.history(t)
		if len(x) != len(y) {
			t.Fatalf("seed %d: %d events, without bursts %d", seed, len(x), len(y))
		}
		for i := range x {
			if !reflect.DeepEqual(x[i], y[i]) {
				t.Fatalf("seed %d, event %d:\n%+v\nwithout bursts:\n%+v", seed, i, x[i], y[i])
			}
		}
		done, failed := fast.Store.Bursts()
		t.Logf("seed %d: %d bursts, and %d failed", seed, done, failed)
	}
}

// inTurns is a worker on a ledger in which its last turn was a burst, so that the next one mostly is, too:
// unless what is known of the lanes has become old, on a machine that is very busy.
func inTurns(t *testing.T, dsn string, s *commands.Service) (turn func(ends ...projection.Job) (
	[]commands.Result, []projection.Job, error), held []projection.Job) {
	t.Helper()
	other := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	for range 60 {
		enqueueOne(t, other, commands.Enqueue{Queue: "mail", Payload: []byte("p")})
	}
	turn = func(ends ...projection.Job) ([]commands.Result, []projection.Job, error) {
		var ops []commands.Op
		for _, j := range ends {
			ops = append(ops, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token}})
		}
		return s.ApplyAndClaim(t.Context(), "worker:w", ops, commands.ClaimRequest{Queues: []string{"mail"},
			Worker: worker("w"), Limit: 2})
	}
	for n, bursts := 0, int64(0); n < 2 || bursts == 0; n++ { // statements are prepared at their first use
		if n == 20 {
			t.Fatal("no turn was a burst")
		}
		ended := held
		results, jobs, err := turn(ended...)
		if held = jobs; err != nil || len(results) != len(ended) || len(held) != 2 {
			t.Fatal(results, jobs, err)
		}
		bursts, _ = s.Store.Bursts()
	}
	return turn, held
}

// A turn is a burst even if jobs take longer than a search may rely on the cache, and if others have
// written much meanwhile.
func TestPostgresBurstOfSlowJobs(t *testing.T) {
	dsn := ledgertest.Postgres(t)
	s := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	t.Cleanup(func() { commandstest.Verify(t, s.Store) })
	turn, held := inTurns(t, dsn, s)
	other := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	many := make([]commands.Enqueue, 1000)
	for i := range many {
		many[i] = commands.Enqueue{Queue: "mail", Payload: []byte("p")}
	}
	for range 3 {
		if _, err := other.Enqueue(t.Context(), "cli:test", many...); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1100 * time.Millisecond) // longer than the cache of claims lives
	before, failed := s.Store.Bursts()
	results, jobs, err := turn(held...)
	if err != nil || len(jobs) != 2 || len(results) != 2 || results[0].Err != nil || results[1].Err != nil {
		t.Fatal(results, jobs, err)
	}
	if done, undone := s.Store.Bursts(); done != before+1 {
		t.Errorf("%d bursts, %d of them failed", done-before, undone-failed)
	}
}

// Turns are bursts through a pooler that lets each client keep its session.
func TestPostgresBurstThroughPooler(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.PgBouncer(t, ledgertest.Postgres(t), "session")
	s := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	t.Cleanup(func() { commandstest.Verify(t, s.Store) })
	turn, held := inTurns(t, dsn, s)
	results, jobs, err := turn(held...)
	if err != nil || len(jobs) != 2 || len(results) != 2 || results[1].Err != nil {
		t.Fatal(results, jobs, err)
	}
}

// A pooler gives a burst the session of another client, which has another ledger: nothing is written there,
// and the turn is refused.
func TestPostgresBurstInTheSessionOfAnother(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	elsewhere := dsn + "&schema=elsewhere"
	theirs := &commands.Service{Store: ledgertest.OpenAt(t, elsewhere)}
	inTurns(t, elsewhere, theirs) // it has the same jobs, by their numbers
	s := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	turn, held := inTurns(t, dsn, s)
	tail := func(s *commands.Service) (pos int64) {
		err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			pos, err = tx.Tail(t.Context())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return pos
	}
	before, theirTail := tail(s), tail(theirs)
	if err := s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`SELECT set_config('search_path', 'elsewhere', false),
			set_config('jobledger.connection', 'x', false)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := turn(held...); !errors.Is(err, ledger.ErrPooled) {
		t.Errorf("got %v, want ErrPooled", err)
	}
	if now := tail(theirs); now != theirTail {
		t.Errorf("%d events were written into the ledger of another", now-theirTail)
	}
	if now := tail(s); now != before {
		t.Errorf("%d events were written", now-before)
	}
}

// A burst in which one job is not as the worker holds it is undone as a whole, and the turn has the outcome
// that it has without: the others end.
func TestPostgresBurstWithALostJob(t *testing.T) {
	dsn := ledgertest.Postgres(t)
	s := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	t.Cleanup(func() { commandstest.Verify(t, s.Store) })
	turn, held := inTurns(t, dsn, s)
	for range 8 {
		apply(t, &commands.Service{Store: ledgertest.OpenAt(t, dsn)}, held[1].ID, commands.Cancel{})
		done, failed := s.Store.Bursts()
		results, jobs, err := turn(held...)
		if err != nil || len(jobs) != 2 || results[0].Err != nil ||
			!errors.Is(results[1].Err, commands.ErrCancelled) {
			t.Fatal(results, jobs, err)
		}
		doneNow, failedNow := s.Store.Bursts()
		if doneNow != done {
			t.Fatal("the burst was carried out")
		}
		if failedNow == failed+1 {
			return
		}
		held = jobs // the turn was not a burst
	}
	t.Error("in 8 turns no burst was tried")
}

// The connection breaks during a burst. If it is durable, the claims show that; where not, sending the
// same once more does it.
func TestPostgresBurstWithLostAnswer(t *testing.T) {
	for name, way := range map[string]commandstest.CommitOutcome{
		"the request is lost": commandstest.RolledBack, "the answer is lost": commandstest.Unacknowledged} {
		t.Run(name, func(t *testing.T) {
			dsn := ledgertest.Postgres(t)
			c, through := commandstest.NewCutter(t, dsn)
			s := &commands.Service{Store: ledgertest.OpenAt(t, through)}
			t.Cleanup(func() { commandstest.Verify(t, s.Store) })
			turn, held := inTurns(t, dsn, s)
			c.Once(way)
			results, jobs, err := turn(held...)
			if c.Cuts.Load() != 1 {
				t.Fatalf("%d cuts", c.Cuts.Load())
			}
			if way == commandstest.RolledBack {
				if !errors.Is(err, ledger.ErrUnknown) {
					t.Fatalf("got %v", err)
				}
				results, jobs, err = turn(held...)
			}
			if err != nil || len(jobs) != 2 || string(jobs[0].Payload) != "p" || len(results) != 2 ||
				results[1].Job.State != event.SucceededState || results[1].Job.FinishedAt.IsZero() {
				t.Fatal(results, jobs, err)
			}
			if again, more, err := turn(held...); err != nil || again[0].Err != nil || len(more) != 2 {
				t.Fatal(again, more, err) // the ends are repeated
			}
		})
	}
}
