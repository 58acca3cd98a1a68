package lineartest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
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

// TestSabotageIsNotLinearizable uses the same tables in ways that have broken other queues. The checker must
// detect each of them, and must accept the same code with the missing check.
func TestSabotageIsNotLinearizable(t *testing.T) {
	calls := ledgertest.Size(40, 40, 100)
	lease := 5 * calls // enough calls for leases to expire meanwhile
	sabotages := [...]struct {
		name  string
		api   func(asIs) linearAPI
		calls int
		found bool
	}{
		{"no token check", func(s asIs) linearAPI { return anyToken{s} }, calls, true},
		{"select, then update", func(s asIs) linearAPI { return selectThenUpdate{s, false} }, calls, true},
		{"select, then update with CAS", func(s asIs) linearAPI { return selectThenUpdate{s, true} }, calls, false},
		{"sweep without CAS", func(s asIs) linearAPI { return lookThenReclaim{s, false} }, lease, true},
		{"sweep with CAS", func(s asIs) linearAPI { return lookThenReclaim{s, true} }, lease, false},
		{"answered before the commit", func(s asIs) linearAPI { return answersFirst{s} }, calls, true},
		{"a stale read", func(s asIs) linearAPI { return &readsLate{asIs: s} }, calls, true},
	}
	for _, test := range ledgertest.Sample(sabotages[:], 2) {
		t.Run(test.name, func(t *testing.T) {
			rounds := 200 // until it is detected, which takes one or two rounds if there are processors to spare
			if !test.found {
				rounds = 2
			}
			for round := range rounds {
				h := newHistory(t, 4)
				damage := h.goroutines(2, 3, test.calls, test.api)
				wrong := h.wrong()
				if wrong == "" && damage != nil {
					wrong = damage.Error()
				}
				switch {
				case wrong != "" && !test.found:
					t.Fatalf("nothing is wrong, and it was found: %s", wrong)
				case wrong != "":
					t.Logf("history %d: %s", round+1, strings.SplitN(wrong, "\n", 2)[0])
					return
				}
			}
			if test.found {
				t.Errorf("not found in %d histories", rounds)
			}
		})
	}
}

// goroutines runs several stores in this process, with several clients on each. An API that breaks the rules
// may write rows that no reader accepts: damage is such an error.
func (h *history) goroutines(stores, clients, calls int, api func(asIs) linearAPI) (damage error) {
	var group sync.WaitGroup
	for i := range stores {
		service := &commands.Service{Store: h.open(h.store.DSN())}
		var out bytes.Buffer
		report := &linearReport{to: &out}
		var mine sync.WaitGroup
		for k := range clients {
			client := newClient(api(asIs{service}), fmt.Sprint("s", i, "-", k), h.clock, report, h.jobs, rand.Uint64())
			mine.Go(func() {
				err := client.run(h.t.Context(), calls)
				switch {
				case errors.Is(err, ledger.ErrDamaged):
					h.mu.Lock()
					damage = err
					h.mu.Unlock()
				case err != nil:
					h.t.Error(err)
				}
			})
		}
		group.Go(func() {
			mine.Wait()
			h.take(i, out.Bytes())
		})
	}
	group.Wait()
	return damage
}

// anyToken does not check tokens: every caller counts as the owner.
type anyToken struct{ asIs }

func (s anyToken) do(ctx context.Context, j projection.Job, c commands.Command) (projection.Job, error) {
	now, err := s.get(ctx, j.ID)
	if err != nil {
		return now, err
	}
	if now.Token != "" {
		c = commandstest.WithToken(c, now.Token)
	}
	return s.asIs.do(ctx, now, c)
}

// selectThenUpdate finds a job in one transaction and claims it in the next one.
type selectThenUpdate struct {
	asIs
	cas bool // compare-and-swap: notice that the job has changed
}

func (s selectThenUpdate) claim(ctx context.Context, r commands.ClaimRequest) (claimed []projection.Job,
	err error) {
	for {
		var found []projection.Job
		err := s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
			search, err := claims.Seek(ctx, tx, claims.Want{Queues: r.Queues}, tx.Now(), r.Limit)
			if err != nil {
				return err
			}
			found, err = search.Jobs(ctx)
			return err
		})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		time.Sleep(rand.N(2 * time.Millisecond)) // widens the race
		err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
			claimed = nil
			for _, seen := range found {
				j, _, err := projection.Get(ctx, tx, seen.ID)
				if err != nil {
					return err
				}
				if s.cas && j.Seq != seen.Seq {
					continue
				}
				after := j
				after.State, after.Seq, after.Attempt, after.Token, after.Worker = event.ClaimedState, j.Seq+1,
					j.Attempt+1, fmt.Sprintf("T%x", rand.Uint64()), r.Worker
				after.ClaimedAt, after.HeartbeatAt, after.LeaseUntil = tx.At(), tx.At(), tx.Now().Add(r.Lease)
				if err := put(ctx, tx, j, after, event.Event{Worker: after.Worker, Token: after.Token,
					Attempt: after.Attempt,
					Body:    &event.Claimed{LeaseUntil: after.LeaseUntil}}); err != nil {
					return err
				}
				claimed = append(claimed, after)
			}
			return nil
		})
		if err != nil || len(claimed) == len(found) {
			return claimed, err
		}
		if len(claimed) > 0 { // the other jobs are not known
			return claimed, nil
		}
	}
}

// put writes a row and an event without any check.
func put(ctx context.Context, tx *ledger.Tx, j, after projection.Job, e event.Event) error {
	if err := claims.Put(ctx, tx, j, after); err != nil {
		return err
	}
	e.Pos, e.Job, e.N, e.Seq, e.At, e.Actor, e.From, e.To = tx.Next(), j.ID, j.N, after.Seq, tx.At(), "test",
		j.State, after.State
	return tx.Append(ctx, e)
}

// lookThenReclaim finds expired leases in one transaction and reclaims the jobs in the next one.
type lookThenReclaim struct {
	asIs
	cas bool // compare-and-swap: check again
}

func (s lookThenReclaim) sweep(ctx context.Context) (reclaimed []projection.Job, err error) {
	var expired []projection.Lease
	err = s.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		expired, err = projection.Expired(ctx, tx, tx.Now(), 100)
		return err
	})
	if err != nil || len(expired) == 0 {
		return nil, err
	}
	time.Sleep(rand.N(4 * time.Millisecond)) // widens the race
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		reclaimed = nil
		for _, l := range expired {
			j, _, err := projection.Get(ctx, tx, l.ID)
			if err != nil {
				return err
			}
			if s.cas && (j.Token != l.Token || !j.LeaseUntil.Equal(l.Until)) {
				continue
			}
			after := letGo(j)
			after.Seq, after.Failures, after.RunAt = j.Seq+1, j.Failures+1, tx.Now()
			if after.Failures >= j.MaxAttempts {
				after.State, after.FinishedAt = event.FailedState, tx.At()
			}
			if err := put(ctx, tx, j, after, event.Event{Worker: j.Worker, Token: j.Token, Attempt: j.Attempt,
				Body: &event.Reclaimed{
					Reason: event.LeaseExpired, LastHeartbeat: j.HeartbeatAt, LeaseUntil: j.LeaseUntil,
					RetryAt: after.RunAt}}); err != nil {
				return err
			}
			reclaimed = append(reclaimed, after)
		}
		return nil
	})
	return reclaimed, err
}

// answersFirst answers before it commits, and skips every tenth commit.
type answersFirst struct{ asIs }

func (s answersFirst) do(ctx context.Context, j projection.Job, c commands.Command) (projection.Job, error) {
	succeed, ok := c.(commands.Succeed)
	now, err := s.get(ctx, j.ID)
	if !ok || err != nil || now.Token != succeed.Token || rand.IntN(10) > 0 {
		return s.asIs.do(ctx, j, c)
	}
	now.State, now.Seq, now.Token, now.LeaseUntil = event.SucceededState, now.Seq+1, "", time.Time{}
	return now, nil
}

// readsLate answers from a copy that may be stale.
type readsLate struct {
	asIs
	mu  sync.Mutex
	old map[event.JobID]projection.Job
}

func (s *readsLate) get(ctx context.Context, id event.JobID) (projection.Job, error) {
	j, err := s.asIs.get(ctx, id)
	if err != nil {
		return j, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.old == nil {
		s.old = make(map[event.JobID]projection.Job)
	}
	if old, ok := s.old[id]; ok && rand.IntN(3) > 0 {
		return old, nil
	}
	s.old[id] = j
	return j, nil
}

// letGo returns j released, as a program without events would do it.
func letGo(j projection.Job) projection.Job {
	return projection.Job{N: j.N, ID: j.ID, Seq: j.Seq, State: event.Queued, Queue: j.Queue,
		Priority: j.Priority,
		RunAt:    j.RunAt, Key: j.Key, MaxAttempts: j.MaxAttempts, MaxRuntime: j.MaxRuntime, Attempt: j.Attempt,
		Failures: j.Failures, Snoozes: j.Snoozes}
}
