package commands_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// TestClaimSeesChangesOfOtherProcesses alternates two programs, each of which queues and moves jobs and
// pauses queues; or one of them does so, with fewer kinds of jobs, and the other only claims. Before each
// claim, a snapshot without a cache determines what the claim must take.
func TestClaimSeesChangesOfOtherProcesses(t *testing.T) {
	for seed := range uint64(ledgertest.Size(4, 4, 12)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			apart := seed%2 > 0
			dsn := ledgertest.New(t)
			now := ledgertest.Epoch
			clock := func() time.Time { return now }
			var both []*commands.Service
			for range 2 {
				store := ledgertest.OpenAt(t, dsn)
				store.Now = clock
				both = append(both, &commands.Service{Store: store})
			}
			queues, priorities, versions := []string{"a", "a-", "b"}, 3, []string{"", "", "v1"}
			if apart {
				queues, priorities, versions = queues[:1], 1, versions[:1]
			}
			snapshot := ledgertest.OpenAt(t, dsn)
			snapshot.Now = clock
			q := &queue{&commandstest.Scenario{Service: &commands.Service{Store: snapshot}, T: t}}
			pick := func(of ...string) string { return of[random.IntN(len(of))] }
			var queued, held []projection.Job
			take := func(from *[]projection.Job) (j projection.Job, ok bool) {
				if len(*from) == 0 {
					return j, false
				}
				i := random.IntN(len(*from))
				j = (*from)[i]
				*from = slices.Delete(*from, i, i+1)
				return j, true
			}
			checked, taken := 0, 0
			for i := range 300 {
				what, s := random.IntN(14), both[random.IntN(2)]
				if apart {
					if s = both[0]; i%2 > 0 {
						what, s = 10, both[1]
					}
					now = now.Add(time.Duration(max(0, random.IntN(600)-300)) * time.Millisecond)
				}
				then := now.Add(time.Duration(random.IntN(5)-1) * time.Second / time.Duration(1+random.IntN(5)))
				do := func(j projection.Job, c commands.Command) {
					_, err := s.Apply(t.Context(), "cli:test", j.ID, c)
					if err != nil && !errors.Is(err, commands.ErrConflict) {
						t.Fatalf("%T: %v", c, err)
					}
				}
				switch what {
				case 0, 1, 2:
					jobs := make([]commands.Enqueue, 1+random.IntN(4))
					for i := range jobs {
						jobs[i] = commands.Enqueue{Queue: pick(queues...), Priority: random.IntN(priorities), RunAt: then,
							Version: pick(versions...)}
					}
					answers, err := s.Enqueue(t.Context(), "cli:test", jobs...)
					if err != nil {
						t.Fatal(err)
					}
					for _, a := range answers {
						queued = append(queued, a.Job)
					}
				case 3:
					if j, ok := take(&held); ok {
						do(j, commands.Release{Token: j.Token, Delay: time.Duration(random.IntN(3)) * time.Second})
					}
				case 4:
					if j, ok := take(&held); ok {
						do(j, commands.Fail{Token: j.Token, Code: "e"})
					}
				case 5:
					if j, ok := take(&held); ok {
						do(j, commands.Cancel{})
						do(j, commands.Retry{})
						queued = append(queued, j)
					}
				case 6:
					if j, ok := take(&queued); ok {
						do(j, commands.Reschedule{RunAt: &then, Priority: new(random.IntN(priorities))})
						queued = append(queued, j)
					}
				case 7:
					_, _ = s.Pause(t.Context(), "cli:test", pick(queues...), "")
				case 8:
					_, _ = s.Resume(t.Context(), "cli:test", pick(queues...), "")
				case 9:
					now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
				default:
					checked++
					want := claims.Want{Queues: []string{pick(queues...), pick(queues...)}, Version: pick("", "v1")}
					most := 1 + random.IntN(4)
					var expected []projection.Job
					err := snapshot.Read(t.Context(), func(tx *ledger.Tx) (err error) {
						search, err := claims.Seek(t.Context(), tx, want, now, most)
						if err != nil {
							return err
						}
						expected, err = search.Jobs(t.Context())
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					got, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: want.Queues, Version: want.Version,
						Worker: worker("w"), Lease: time.Hour, Limit: most})
					if err != nil {
						t.Fatal(err)
					}
					if ids(got) != ids(expected) {
						t.Fatalf("claimed %s, want %s", ids(got), ids(expected))
					}
					held, taken = append(held, got...), taken+len(got)
				}
			}
			q.Verify()
			if checked < 50 || taken < 30 {
				t.Errorf("%d claims took %d jobs: too few to prove anything", checked, taken)
			}
		})
	}
}

func ids(jobs []projection.Job) string {
	var all []event.JobID
	for _, j := range jobs {
		all = append(all, j.ID)
	}
	return fmt.Sprint(all)
}

// A claim sees what its own transaction has queued, whatever it prefetched before.
func TestClaimTakesWhatItsTransactionReleased(t *testing.T) {
	dsn := ledgertest.New(t)
	now := ledgertest.Epoch
	open := func() *queue {
		store := ledgertest.OpenAt(t, dsn)
		store.Now = func() time.Time { return now }
		return &queue{&commandstest.Scenario{Service: &commands.Service{Store: store}, T: t}}
	}
	producer, consumer := open(), open()
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w"), Lease: time.Hour, Limit: 3}
	for range 5 {
		j := producer.enqueue(commands.Enqueue{Queue: "mail"})
		for range 3 {
			claimed, err := consumer.Claim(t.Context(), r)
			if err != nil || ids(claimed) != ids([]projection.Job{j}) {
				t.Fatalf("claimed %s, %v; want %s", ids(claimed), err, j.ID)
			}
			now = now.Add(time.Second)
			outcomes, claimed, err := consumer.ApplyAndClaim(t.Context(), "worker:w",
				[]commands.Op{{Job: claimed[0], Command: commands.Release{Token: claimed[0].Token}}}, r)
			if err != nil || outcomes[0].Err != nil || ids(claimed) != ids([]projection.Job{j}) {
				t.Fatalf("released (%v) and claimed %s, %v; want %s", outcomes, ids(claimed), err, j.ID)
			}
			consumer.do(claimed[0], commands.Release{Token: claimed[0].Token})
			now = now.Add(time.Second)
		}
		producer.do(j, commands.Cancel{})
	}
	consumer.Verify()
}
