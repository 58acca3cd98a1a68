package commands_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// The connection breaks while COMMIT or its answer is in flight. The caller gets an unknown outcome; sending
// the same command again gets the one answer.
func TestPostgresCommitWithLostAnswer(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]commandstest.CommitOutcome{
		"the request is lost": commandstest.RolledBack, "the answer is lost": commandstest.Unacknowledged} {
		t.Run(name, func(t *testing.T) {
			dsn := ledgertest.Postgres(t)
			c, through := commandstest.NewCutter(t, dsn)
			store := ledgertest.OpenAt(t, through)
			q := &queue{&commandstest.Scenario{T: t, Service: &commands.Service{Store: store}}}
			t.Cleanup(q.Verify)
			cut := func() {
				c.Once(way)
				c.Cuts.Store(0)
			}
			wantUnknown := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, ledger.ErrUnknown) || c.Cuts.Load() != 1 {
					t.Fatalf("%s: got %v after %d cuts, want ErrUnknown after one", what, err, c.Cuts.Load())
				}
			}
			// Statements are prepared at their first use, so only the COMMIT is sent here.
			warm := q.enqueue(commands.Enqueue{Queue: "warm", Payload: []byte("w")})
			held, err := q.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"warm"}, Worker: worker("w")})
			if err != nil || len(held) != 1 {
				t.Fatal(held, err)
			}
			if _, err := q.Apply(t.Context(), "worker:w", warm.ID, commands.Succeed{Token: held[0].Token,
				Result: []byte("r")}); err != nil {
				t.Fatal(err)
			}
			durable := way == commandstest.Unacknowledged

			cut()
			job := commands.Enqueue{ID: id(1), Queue: "mail", Payload: []byte("p")}
			_, err = q.Enqueue(t.Context(), "cli:test", job)
			wantUnknown("enqueue", err)
			again, err := q.Enqueue(t.Context(), "cli:test", job)
			if err != nil || again[0].Existing != durable {
				t.Fatalf("enqueue again: %+v, %v", again, err)
			}

			cut()
			request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w")}
			mine, err := q.Claim(t.Context(), request)
			if !durable {
				wantUnknown("claim", err)
				mine, err = q.Claim(t.Context(), request)
			}
			if err != nil || len(mine) != 1 || mine[0].Attempt != 1 || string(mine[0].Payload) != "p" ||
				c.Cuts.Load() != 1 {
				t.Fatalf("claim: got %+v, %v, want the job that was asked for", mine, err)
			}

			cut()
			end := commands.Succeed{Token: mine[0].Token, Result: []byte("r")}
			_, err = q.Apply(t.Context(), "worker:w", mine[0].ID, end)
			wantUnknown("succeed", err)
			ended, err := q.Apply(t.Context(), "worker:w", mine[0].ID, end)
			if err != nil || ended.State != event.SucceededState {
				t.Fatalf("succeed again: %+v, %v", ended, err)
			}
			if got := strings.Join(q.kinds(mine[0].ID), " "); got != "enqueued claimed succeeded" {
				t.Errorf("events: %s", got)
			}
		})
	}
}

// clients enqueue, claim and finish jobs. They send again what was not answered, and keep the answers.
type clients struct {
	t    *testing.T
	stop atomic.Bool

	mu       sync.Mutex
	enqueued map[event.JobID]bool
	tokens   map[event.JobID]string // of acknowledged claims
	ended    map[event.JobID]bool
	again    int // how often a command was sent again
}

func newLoad(t *testing.T) *clients {
	return &clients{t: t, enqueued: make(map[event.JobID]bool), tokens: make(map[event.JobID]string),
		ended: make(map[event.JobID]bool)}
}

// passes reports whether an error may be answered by sending the same command again.
func (l *clients) passes(err error) bool {
	for _, target := range []error{ledger.ErrUnknown, ledger.ErrIO, ledger.ErrBusy} {
		if errors.Is(err, target) {
			l.mu.Lock()
			l.again++
			l.mu.Unlock()
			time.Sleep(5 * time.Millisecond) // backoff of a client
			return true
		}
	}
	return false
}

func (l *clients) hand(ctx context.Context, s *commands.Service, name string) {
	w := event.Worker{Name: name, Boot: name, PID: os.Getpid()}
	for n := 0; !l.stop.Load(); n++ {
		job := commands.Enqueue{ID: ulid.Make().String(), Queue: "q", Payload: fmt.Append(nil, name, n),
			Priority: n % 3}
		_, err := s.Enqueue(ctx, "cli:"+name, job)
		for l.passes(err) {
			_, err = s.Enqueue(ctx, "cli:"+name, job)
		}
		if err != nil {
			l.t.Errorf("enqueue: %v", err)
			return
		}
		l.mu.Lock()
		l.enqueued[event.JobID(job.ID)] = true
		l.mu.Unlock()

		mine, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"q"}, Worker: w, Lease: time.Hour,
			Limit: 2})
		if err != nil && !l.passes(err) { // a job with an unknown outcome stays claimed
			l.t.Errorf("claim: %v", err)
			return
		}
		for _, j := range mine {
			l.mu.Lock()
			if other, ok := l.tokens[j.ID]; ok {
				l.t.Errorf("job %s is held with %s and %s", j.ID, other, j.Token)
			}
			l.tokens[j.ID] = j.Token
			l.mu.Unlock()
			end := commands.Succeed{Token: j.Token, Result: j.Payload}
			_, err := s.Apply(ctx, "worker:"+name, j.ID, end)
			for l.passes(err) {
				_, err = s.Apply(ctx, "worker:"+name, j.ID, end)
			}
			if err != nil {
				l.t.Errorf("succeed: %v", err)
				return
			}
			l.mu.Lock()
			l.ended[j.ID] = true
			l.mu.Unlock()
		}
	}
}

// check compares the answers that the clients got with the ledger.
func (l *clients) check(s *commands.Service) {
	t := l.t
	t.Helper()
	(&queue{&commandstest.Scenario{T: t, Service: s}}).Verify()
	count := make(map[string]int)
	token := make(map[event.JobID]string)
	ended := make(map[event.JobID]string)
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		var last int64
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			if e.Pos != last+1 {
				t.Errorf("event %d comes after event %d", e.Pos, last)
			}
			last = e.Pos
			if count[string(e.Job)+e.Kind().String()]++; count[string(e.Job)+e.Kind().String()] > 1 {
				t.Errorf("job %s is %s a second time", e.Job, e.Kind())
			}
			switch e.Kind() {
			case event.KindEnqueued:
				if !l.enqueued[e.Job] {
					t.Errorf("job %s was never acknowledged", e.Job)
				}
			case event.KindClaimed:
				token[e.Job] = e.Token
			case event.KindSucceeded:
				ended[e.Job] = e.Token
			default:
				t.Errorf("event %d is %s", e.Pos, e.Kind())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for job := range l.enqueued {
		if count[string(job)+"enqueued"] != 1 {
			t.Errorf("job %s was acknowledged and is not there", job)
		}
	}
	for job, held := range l.tokens {
		if token[job] != held {
			t.Errorf("job %s was claimed with %s, the ledger says %q", job, held, token[job])
		}
	}
	for job := range l.ended {
		if ended[job] != l.tokens[job] {
			t.Errorf("job %s was finished with %s, the ledger says %q", job, l.tokens[job], ended[job])
		}
	}
	if len(ended) != len(l.ended) || len(l.ended) < enoughEnded {
		t.Errorf("%d jobs have ended, %d were acknowledged", len(ended), len(l.ended))
	}
	t.Logf("%d jobs, %d claimed, %d ended; %d times something was sent again", len(l.enqueued), len(token),
		len(ended), l.again)
}

// run makes clients work on stores until during returns.
func (l *clients) run(stores []*ledger.Store, clients int, during func()) {
	var working sync.WaitGroup
	for i, s := range stores {
		service := &commands.Service{Store: s}
		for k := range clients {
			working.Go(func() { l.hand(l.t.Context(), service, fmt.Sprintf("w%d-%d-", i, k)) })
		}
	}
	during()
	l.stop.Store(true)
	working.Wait()
}

const enoughEnded = 10 // the least number of ended jobs that makes a load meaningful

// until waits until enough jobs have ended, and then for more, a minute at most. Other checks report what is
// missing then.
func (l *clients) until(more func() bool) {
	// The sleep is the interval of a poll.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		n := len(l.ended)
		l.mu.Unlock()
		if n >= enoughEnded && more() {
			return
		}
	}
}

// Connections break at every tenth COMMIT, before it or after it. Nothing that was acknowledged is lost, and
// nothing is done twice.
func TestPostgresCommitsAreCutUnderLoad(t *testing.T) {
	ledgertest.Slow(t)
	dsn := ledgertest.Postgres(t)
	c, through := commandstest.NewCutter(t, dsn)
	stores := []*ledger.Store{ledgertest.OpenAt(t, through), ledgertest.OpenAt(t, through),
		ledgertest.OpenAt(t, dsn)}
	l := newLoad(t)
	c.Every.Store(10)
	l.run(stores, 3, func() {
		time.Sleep(loadFor(t)) // the load continues meanwhile
		l.until(func() bool { return c.Cuts.Load() >= 4 })
	})
	c.Every.Store(0)
	if c.Cuts.Load() < 4 {
		t.Errorf("only %d of %d commits were cut", c.Cuts.Load(), c.Seen())
	}
	l.check(&commands.Service{Store: stores[2]})
	t.Logf("%d of %d commits were cut", c.Cuts.Load(), c.Seen())
}

func loadFor(t *testing.T) time.Duration {
	standard := ledgertest.Size(time.Second, time.Second, 2*time.Second)
	return ledgertest.SoakFor(t, standard, time.Second, 10*time.Second)
}

// A server that is stopped or killed and restarted costs its callers only time.
func TestPostgresRestartUnderLoad(t *testing.T) {
	ledgertest.Slow(t)
	server := ledgertest.PostgresServer(t)
	goroutines := runtime.NumGoroutine()
	var stores []*ledger.Store
	for range 4 {
		stores = append(stores, ledgertest.OpenAt(t, server.URL()))
	}
	_, stop := stores[0].Watch()
	defer stop()
	l := newLoad(t)
	l.run(stores, 4, func() {
		for end, i := time.Now().Add(loadFor(t)), 0; i < 2 || time.Now().Before(end); i++ {
			time.Sleep(300 * time.Millisecond) // the load continues
			if i%2 == 0 {
				server.Kill()
			} else {
				server.Stop()
			}
			server.Start()
		}
		time.Sleep(300 * time.Millisecond) // the load continues after the last start
		l.until(func() bool { return true })
	})
	l.check(&commands.Service{Store: stores[0]})

	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	left := func() (connections int) {
		const others = `SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
AND pid <> pg_backend_pid()`
		if err := conn.QueryRow(t.Context(), others).Scan(&connections); err != nil {
			t.Fatal(err)
		}
		return connections
	}
	for end := time.Now().Add(20 * time.Second); left() > 0 || runtime.NumGoroutine() > goroutines; time.Sleep(
		5 * time.Millisecond) {
		if time.Now().After(end) {
			text := make([]byte, 1<<20)
			t.Fatalf("after Close: %d connections, %d goroutines, %d before:\n%s", left(), runtime.NumGoroutine(),
				goroutines, text[:runtime.Stack(text, true)])
		}
	}
}

// Text that PostgreSQL cannot store is refused before it is sent, as on the other engine.
func TestPostgresTextWithNULIsRefused(t *testing.T) {
	t.Parallel()
	q := &queue{&commandstest.Scenario{T: t,
		Service: &commands.Service{Store: ledgertest.OpenAt(t, ledgertest.Postgres(t))}}}
	t.Cleanup(q.Verify)
	const bad = "a\x00b"
	for name, job := range map[string]commands.Enqueue{
		"queue": {Queue: bad}, "key": {Queue: "q", Key: bad}, "version": {Queue: "q", Version: bad},
		"requires":     {Queue: "q", Requires: []string{bad}},
		"a tag's name": {Queue: "q", Tags: map[string]string{bad: "x"}},
		"a tag":        {Queue: "q", Tags: map[string]string{"x": bad}},
	} {
		if _, err := q.Enqueue(t.Context(), "cli:test", job); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if _, err := q.Enqueue(t.Context(), bad, commands.Enqueue{Queue: "q"}); !errors.Is(err,
		commands.ErrInvalid) {
		t.Errorf("actor: got %v, want ErrInvalid", err)
	}
	payload := []byte(bad + "\xff")
	j := q.enqueue(commands.Enqueue{Queue: "q", Payload: payload})
	for name, r := range map[string]commands.ClaimRequest{
		"queue": {Queues: []string{bad}}, "worker": {Queues: []string{"q"},
			Worker: event.Worker{Name: bad, Boot: "b"}},
		"boot":       {Queues: []string{"q"}, Worker: event.Worker{Name: "w", Boot: bad}},
		"host":       {Queues: []string{"q"}, Worker: event.Worker{Name: "w", Boot: "b", Host: bad}},
		"capability": {Queues: []string{"q"}, Worker: worker("w"), Capabilities: []string{bad}},
	} {
		if _, err := q.Claim(t.Context(), r); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	held, err := q.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"q"}, Worker: worker("w")})
	if err != nil || len(held) != 1 || !bytes.Equal(held[0].Payload, payload) {
		t.Fatalf("got %+v, %v", held, err)
	}
	for name, c := range map[string]commands.Command{
		"token": commands.Succeed{Token: bad}, "note": commands.Heartbeat{Token: held[0].Token, Note: bad},
		"reason": commands.Release{Token: held[0].Token, Reason: bad}, "code": commands.Fail{Token: held[0].Token,
			Code: bad},
		"detail": commands.Fail{Token: held[0].Token, Detail: bad}, "signal": commands.Fail{Token: held[0].Token,
			Signal: bad},
		"why": commands.Cancel{Reason: bad}, "owner": commands.Succeed{Token: held[0].Token, Owner: bad},
	} {
		_, err := q.Apply(t.Context(), "cli:test", j.ID, c)
		if !errors.Is(err, commands.ErrInvalid) && !errors.Is(err, commands.ErrLeaseLost) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if _, err := q.Apply(t.Context(), "cli:test", event.JobID(bad), commands.Cancel{}); !errors.Is(err,
		commands.ErrNoJob) {
		t.Errorf("the job's id: got %v, want ErrNoJob", err)
	}
	var state projection.Job
	if err := q.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		state, _,
			err = projection.Get(t.Context(), tx, j.ID)
		return err
	}); err != nil || state.State != event.ClaimedState {
		t.Errorf("the job is %v, %v", state.State, err)
	}
}

// A claim looks for jobs before it has the lock. It also takes what other processes commit until then.
func TestPostgresClaimWaitsForTheLock(t *testing.T) {
	t.Parallel()
	claim := func(s *commands.Service, limit int) ([]projection.Job, error) {
		return s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail", "video"}, Worker: worker("w"),
			Limit: limit})
	}
	// while runs something while a claim of up to two jobs waits, and returns the jobs claimed.
	while := func(t *testing.T, enqueue func(q *queue), fn func(other *queue)) (*queue, []projection.Job) {
		dsn := ledgertest.Postgres(t)
		c, through := commandstest.NewCutter(t, dsn)
		slow := &commands.Service{Store: ledgertest.OpenAt(t, through)}
		q := &queue{&commandstest.Scenario{T: t, Service: &commands.Service{Store: ledgertest.OpenAt(t, dsn)}}}
		t.Cleanup(q.Verify)
		enqueue(q)
		h := c.Hold()
		var claimed []projection.Job
		var err error
		var claiming sync.WaitGroup
		claiming.Go(func() { claimed, err = claim(slow, 2) })
		<-h.Asks
		fn(q)
		close(h.GoesOn)
		claiming.Wait()
		if err != nil {
			t.Fatal(err)
		}
		return q, claimed
	}
	t.Run("a queue paused meanwhile", func(t *testing.T) {
		_, claimed := while(t, func(q *queue) {
			q.enqueue(commands.Enqueue{})
			q.enqueue(commands.Enqueue{})
		}, func(q *queue) {
			if _, err := q.Pause(t.Context(), "cli:test", "mail", ""); err != nil {
				t.Fatal(err)
			}
		})
		if len(claimed) != 0 {
			t.Errorf("%d jobs were claimed after the queue had been paused", len(claimed))
		}
	})
	t.Run("a job cancelled meanwhile", func(t *testing.T) {
		var first projection.Job
		_, claimed := while(t, func(q *queue) {
			first = q.enqueue(commands.Enqueue{})
			q.enqueue(commands.Enqueue{})
			q.enqueue(commands.Enqueue{})
		}, func(q *queue) {
			if _, err := q.Apply(t.Context(), "cli:test", first.ID, commands.Cancel{}); err != nil {
				t.Errorf("cancel: %v", err)
			}
		})
		if len(claimed) != 2 || claimed[0].ID == first.ID || claimed[1].ID == first.ID {
			t.Errorf("got %+v, want the other two", claimed)
		}
	})
	t.Run("jobs that are not taken stay claimable", func(t *testing.T) {
		_, claimed := while(t, func(q *queue) {
			q.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("1")})
			q.enqueue(commands.Enqueue{Queue: "video", Payload: []byte("2")})
			q.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("3")})
		}, func(q *queue) {
			mine, err := claim(q.Service, 1)
			if err != nil || len(mine) != 1 {
				t.Errorf("got %d jobs, %v, want the one that no worker takes", len(mine), err)
			}
		})
		if len(claimed) != 2 {
			t.Errorf("%d jobs were claimed, want 2", len(claimed))
		}
	})
}
