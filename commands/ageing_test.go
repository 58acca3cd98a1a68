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

// TestAgeingOrdersClaims lets two stores enqueue, claim, release and change the ageing at random, and then
// looks at every claim: no job that was due came before the claimed one by priority and wait.
func TestAgeingOrdersClaims(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	second := &queue{commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))}
	queues := []*queue{q, second}
	random := rand.New(rand.NewPCG(3, uint64(ledgertest.Size(1, 2, 3)))) // #nosec G404 -- a test
	for range ledgertest.Size(150, 150, 1000) {
		u := queues[random.IntN(len(queues))]
		q.Now = q.Now.Add(time.Duration(random.IntN(1500)) * time.Millisecond)
		second.Now = q.Now
		switch random.IntN(8) {
		case 0, 1, 2:
			for range 1 + random.IntN(3) {
				e := commands.Enqueue{Priority: random.IntN(7) - 3,
					RunAt: q.Now.Add(time.Duration(random.IntN(5)-1) * time.Second)}
				if random.IntN(3) == 0 {
					e.Version = "v2"
				}
				u.enqueue(e)
			}
		case 3:
			if random.IntN(4) == 0 {
				u.setLimit(limits.Spec{Ageing: time.Duration(random.IntN(4)) * time.Second})
			}
		default:
			v2 := func(r *commands.ClaimRequest) { r.Version = "v2" }
			for _, j := range u.claim("w", limit(1+random.IntN(3)), v2) {
				if random.IntN(3) == 0 {
					u.apply(j, commands.Release{Token: j.Token, Delay: time.Duration(random.IntN(3)) * time.Second})
				} else {
					u.succeed(j)
				}
			}
		}
	}
	wantAged(t, q.Store)
	q.Verify()
}

// wantAged checks the order of the claims of a queue, without any code of lanes.
func wantAged(t testing.TB, s *ledger.Store) {
	t.Helper()
	jobs, ageing, early := make(map[int64]projection.Job), time.Duration(0), 0
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.QueueLimited); ok {
				ageing = b.Ageing
			}
			if e.N == 0 {
				continue
			}
			j := jobs[e.N]
			if e.Kind() == event.KindClaimed {
				for _, o := range jobs {
					if o.State != event.Queued || o.N == j.N || o.RunAt.After(e.At) {
						continue
					}
					first := o.Priority > j.Priority || o.Priority == j.Priority && o.RunAt.Before(j.RunAt)
					if ageing > 0 {
						ready := func(j projection.Job) time.Time {
							return j.RunAt.Add(-time.Duration(j.Priority) * ageing)
						}
						if first = ready(o).Before(ready(j)); o.Priority > j.Priority && !first {
							early++
						}
					}
					if first {
						t.Errorf("event %d: claimed %s although %s came first, with ageing %s", e.Pos, text(j), text(o), ageing)
					}
				}
			}
			after, err := projection.Evolve(j, e)
			if err != nil {
				return err
			}
			jobs[e.N] = after
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if early == 0 {
		t.Error("no job ever came before one of a higher priority, so nothing was tried")
	}
}

func text(j projection.Job) string {
	return fmt.Sprintf("job %d (priority %d, %s)", j.N, j.Priority, event.FormatTime(j.RunAt))
}

// TestAgeingIsOfOneQueue checks that ageing leaves the order among queues to priorities, and other queues as
// they were.
func TestAgeingIsOfOneQueue(t *testing.T) {
	q := newQueue(t)
	q.setLimit(limits.Spec{Ageing: time.Second})
	for _, name := range []string{"mail", "other"} {
		q.enqueue(commands.Enqueue{Queue: name, Payload: []byte(name + " old")})
	}
	q.Now = q.Now.Add(time.Minute)
	q.enqueue(commands.Enqueue{Payload: []byte("mail high"), Priority: 5})
	q.enqueue(commands.Enqueue{Queue: "other", Payload: []byte("other high"), Priority: 3})
	var got []string
	for _, j := range q.claim("w", limit(9), func(r *commands.ClaimRequest) {
		r.Queues = []string{"mail", "other"}
	}) {
		got = append(got, string(j.Payload))
	}
	if want := "[other high mail old mail high other old]"; fmt.Sprint(got) != want {
		t.Errorf("claimed %v, want %s", got, want)
	}
	q.Verify()
}
