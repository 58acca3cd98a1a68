package commands_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// TestClaimsFollowWhatOthersDo lets two programs do all that queues jobs, moves them and stops queues, in turn. Before each
// claim a snapshot, which remembers nothing, is asked what it must take.
func TestClaimsFollowWhatOthersDo(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			dsn := ledgertest.New(t)
			now := ledgertest.Epoch
			clock := func() time.Time { return now }
			var both []*commands.Service
			for range 2 {
				store := ledgertest.OpenAt(t, dsn)
				store.Now = clock
				both = append(both, &commands.Service{Store: store})
			}
			snapshot := ledgertest.OpenAt(t, dsn)
			snapshot.Now = clock
			q := &queue{Service: &commands.Service{Store: snapshot}, t: t}
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
			claims, taken := 0, 0
			for range 300 {
				s := both[random.IntN(2)]
				then := now.Add(time.Duration(random.IntN(5)-1) * time.Second)
				do := func(j projection.Job, c commands.Command) {
					_, err := s.Do(t.Context(), "cli:test", j.ID, c)
					if err != nil && !errors.Is(err, commands.ErrConflict) {
						t.Fatalf("%T: %v", c, err)
					}
				}
				switch random.IntN(14) {
				case 0, 1, 2:
					jobs := make([]commands.Enqueue, 1+random.IntN(4))
					for i := range jobs {
						jobs[i] = commands.Enqueue{Queue: pick("a", "a-", "b"), Priority: random.IntN(3), RunAt: then, Version: pick("", "", "v1")}
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
						priority := random.IntN(3)
						do(j, commands.Reschedule{RunAt: &then, Priority: &priority})
						queued = append(queued, j)
					}
				case 7:
					_, _ = s.Pause(t.Context(), "cli:test", pick("a", "b"), "")
				case 8:
					_, _ = s.Resume(t.Context(), "cli:test", pick("a", "b"), "")
				case 9:
					now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
				default:
					claims++
					want := projection.Want{Queues: []string{pick("a", "b"), pick("a", "a-", "b")}, Version: pick("", "v1")}
					most := 1 + random.IntN(4)
					var expected []projection.Job
					err := snapshot.Read(t.Context(), func(tx *ledger.Tx) (err error) {
						expected, err = projection.Next(t.Context(), tx, want, now, most)
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					got, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: want.Queues, Version: want.Version, Worker: worker("w"), Lease: time.Hour, Limit: most})
					if err != nil {
						t.Fatal(err)
					}
					if ids(got) != ids(expected) {
						t.Fatalf("claimed %s, want %s", ids(got), ids(expected))
					}
					held, taken = append(held, got...), taken+len(got)
				}
			}
			q.verify()
			if claims < 50 || taken < 30 {
				t.Errorf("%d claims took %d jobs: too few to prove anything", claims, taken)
			}
		})
	}
}

func ids(jobs []projection.Job) string {
	var all []ledger.JobID
	for _, j := range jobs {
		all = append(all, j.ID)
	}
	return fmt.Sprint(all)
}
