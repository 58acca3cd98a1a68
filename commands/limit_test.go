package commands_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	limits "jobledger/projection/limit"
)

func (q *queue) setLimit(to limits.Spec) {
	q.T.Helper()
	if _, err := q.Limit(q.T.Context(), "cli:test", "mail", to, ""); err != nil {
		q.T.Fatalf("limit: %v", err)
	}
}

func (q *queue) succeed(j projection.Job) {
	q.T.Helper()
	_, err := q.Apply(q.T.Context(), "worker:"+j.Worker.Name, j.ID, commands.Succeed{Token: j.Token})
	if err != nil {
		q.T.Fatalf("succeed: %v", err)
	}
}

func TestLimitRunningBoundsClaims(t *testing.T) {
	q := newQueue(t)
	for range 12 {
		q.enqueue(commands.Enqueue{})
	}
	other := q.enqueue(commands.Enqueue{Queue: "other"})
	q.setLimit(limits.Spec{Running: 3})
	first := q.claim("a", limit(5), func(r *commands.ClaimRequest) { r.Queues = []string{"mail", "other"} })
	if len(first) != 4 || first[3].ID != other.ID {
		t.Fatalf("claimed %d jobs, want 3 of mail and the one of other", len(first))
	}
	if more := q.claim("b", limit(5)); len(more) != 0 {
		t.Fatalf("claimed %d jobs of a full queue", len(more))
	}
	q.succeed(first[0])
	if more := q.claim("b", limit(5)); len(more) != 1 {
		t.Fatalf("claimed %d jobs after one had ended, want 1", len(more))
	}
	q.setLimit(limits.Spec{Running: 5})
	second := q.claim("b", limit(5))
	if len(second) != 2 {
		t.Fatalf("claimed %d jobs after the limit was raised from 3 to 5, want 2", len(second))
	}
	q.setLimit(limits.Spec{Running: 1})
	q.succeed(first[1])
	q.succeed(second[0])
	if more := q.claim("b", limit(5)); len(more) != 0 {
		t.Fatalf("claimed %d jobs while 3 were live and the limit was lowered to 1", len(more))
	}
	q.setLimit(limits.Spec{})
	if more := q.claim("b", limit(9)); len(more) != 6 {
		t.Fatalf("claimed %d jobs without a limit, want the other 6", len(more))
	}
	q.Verify()
}

func TestLimitSlotIsFreeAfterEveryEnd(t *testing.T) {
	q := newQueue(t)
	q.setLimit(limits.Spec{Running: 1})
	for name, end := range map[string]func(j projection.Job){
		"succeed": q.succeed,
		"fail":    func(j projection.Job) { q.apply(j, commands.Fail{Token: j.Token, NoRetry: true}) },
		"release": func(j projection.Job) { q.apply(j, commands.Release{Token: j.Token, Delay: time.Hour}) },
		"cancel": func(j projection.Job) {
			q.apply(j, commands.Cancel{})
			if more := q.claim("b"); len(more) != 0 {
				t.Fatal("claimed a second job while the command of a cancelled one may run")
			}
			q.apply(j, commands.ReportStop{Token: j.Token})
		},
		"cancel, and the lease ends": func(j projection.Job) {
			q.apply(j, commands.Cancel{})
			q.Now = q.Now.Add(2 * time.Minute)
		},
		"reclaim": func(projection.Job) { q.Now = q.Now.Add(2 * time.Minute); q.sweep() },
	} {
		q.enqueue(commands.Enqueue{MaxAttempts: 1})
		q.enqueue(commands.Enqueue{MaxAttempts: 1})
		j := q.claimOne("a")
		if more := q.claim("b"); len(more) != 0 {
			t.Fatalf("before %s: claimed a second job", name)
		}
		end(j)
		q.succeed(q.claimOne("b"))
	}
	q.Verify()
}

func (q *queue) apply(j projection.Job, c commands.Command) {
	q.T.Helper()
	if _, err := q.Apply(q.T.Context(), "worker:a", j.ID, c); err != nil {
		q.T.Fatalf("%T: %v", c, err)
	}
}

// TestLimitEqualAgain checks that limits that are so already record no event.
func TestLimitEqualAgain(t *testing.T) {
	q := newQueue(t)
	q.setLimit(limits.Spec{Running: 3})
	tail := q.Tail()
	q.setLimit(limits.Spec{Running: 3})
	if q.Tail() != tail {
		t.Error("the same limit was recorded twice")
	}
}

// TestLimitReadyOfFullQueue checks that an idle worker sees nothing to claim, and no time to wait for, while
// the queue is full; and that the end of a claim in another process wakes it.
func TestLimitReadyOfFullQueue(t *testing.T) {
	q := newQueue(t)
	q.setLimit(limits.Spec{Running: 1})
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("a")
	other := ledgertest.OpenAt(t, q.Store.DSN())
	service := &commands.Service{Store: other}
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "b", Boot: "b"}}
	ready, next, err := service.Ready(t.Context(), r)
	if err != nil || ready || !next.IsZero() {
		t.Fatalf("ready %t at %s, %v; want nothing", ready, next, err)
	}
	woken, stop := q.Store.Watch()
	defer stop()
	if _, err := service.Apply(t.Context(), "worker:a", j.ID, commands.Succeed{Token: j.Token}); err != nil {
		t.Fatal(err)
	}
	<-woken
	if ready, _, err := service.Ready(t.Context(), r); err != nil || !ready {
		t.Fatalf("ready %t, %v after a slot became free", ready, err)
	}
	q.Verify()
}

// TestLimitHoldsAtEveryPosition lets two stores claim, end and limit at random, several functions at a time,
// and then counts the live claims at every event.
func TestLimitHoldsAtEveryPosition(t *testing.T) {
	q := newQueue(t)
	second := commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))
	services := []*commands.Service{q.Service, second.Service}
	random := rand.New(rand.NewPCG(1, uint64(ledgertest.Size(1, 2, 3)))) // #nosec G404 -- a test
	held := make([][]projection.Job, len(services))
	for range ledgertest.Size(60, 200, 600) {
		i := random.IntN(len(services))
		s := services[i]
		var err error
		switch random.IntN(8) {
		case 0, 1:
			_, err = s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Priority: random.IntN(3)},
				commands.Enqueue{Queue: "mail", Version: "v2"})
		case 2:
			_, err = s.Limit(t.Context(), "cli:test", "mail", limits.Spec{Running: random.IntN(6)}, "")
		case 3, 4, 5:
			var jobs []projection.Job
			jobs, err = s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Version: "v2",
				Worker: event.Worker{Name: fmt.Sprint("w", i), Boot: fmt.Sprint("b", i)}, Limit: 1 + random.IntN(5)})
			held[i] = append(held[i], jobs...)
		default:
			if n := len(held[i]); n > 0 { // an end and the next claim in one transaction
				j := held[i][n-1]
				held[i] = held[i][:n-1]
				var jobs []projection.Job
				_, jobs, err = s.ApplyAndClaim(t.Context(), fmt.Sprint("worker:w", i),
					[]commands.Op{{Job: j, Command: commands.Fail{Token: j.Token}}}, commands.ClaimRequest{
						Queues: []string{"mail"}, Version: "v2", Limit: 2,
						Worker: event.Worker{Name: fmt.Sprint("w", i), Boot: fmt.Sprint("b", i)}})
				held[i] = append(held[i], jobs...)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wantWithinLimits(t, q.Store)
	q.Verify()
}

// wantWithinLimits counts the live claims of each queue at every event, without any code of the limits.
func wantWithinLimits(t testing.TB, s *ledger.Store) (most int) {
	t.Helper()
	bounds, live, queues := make(map[string]int), make(map[string]int), make(map[event.JobID]string)
	full := 0
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			switch b := e.Body.(type) {
			case *event.QueueLimited:
				bounds[b.Queue] = b.Running
			case *event.Enqueued:
				queues[e.Job] = b.Queue
			}
			queue := queues[e.Job]
			switch {
			case e.To.Held() && !e.From.Held():
				live[queue]++
				if n := bounds[queue]; n > 0 && live[queue] > n {
					t.Errorf("event %d: %d jobs of %s are live, the limit is %d", e.Pos, live[queue], queue, n)
				} else if n > 0 && live[queue] == n {
					full++
				}
				most = max(most, live[queue])
			case e.From.Held() && !e.To.Held() && e.Seq > 0:
				live[queue]--
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if full == 0 {
		t.Error("no queue ever was full, so nothing was tried")
	}
	return most
}
