package audit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// busy is a ledger that changes between two steps of a check.
type busy struct {
	t       *testing.T
	s       *commands.Service
	random  *rand.Rand
	now     time.Time
	jobs    []event.JobID
	held    []projection.Job
	actions int
}

// act runs a random command. Most are allowed.
func (b *busy) act() {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	b.actions++
	ctx := b.t.Context()
	any := func() event.JobID { return b.jobs[b.random.IntN(len(b.jobs))] }
	apply := func(id event.JobID, c commands.Command) {
		_, err := b.s.Apply(ctx, "cli:test", id, c)
		if !isAny(err, nil, commands.ErrConflict, commands.ErrCancelled, commands.ErrLeaseLost) {
			b.t.Fatal(err)
		}
	}
	switch n := b.random.IntN(12); {
	case n < 4 || len(b.jobs) == 0:
		made, err := b.s.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail", MaxAttempts: 2,
			Payload: []byte(fmt.Sprint("payload ", b.actions))})
		if err != nil {
			b.t.Fatal(err)
		}
		b.jobs = append(b.jobs, made[0].ID)
	case n < 7:
		jobs, err := b.s.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"},
			Worker: event.Worker{Name: "w1", Boot: "boot-1", Host: "h", PID: 7}, Lease: 24 * time.Hour})
		if err != nil {
			b.t.Fatal(err)
		}
		b.held = append(b.held, jobs...)
	case n < 9 && len(b.held) > 0:
		j := b.held[0]
		b.held = b.held[1:]
		apply(j.ID, []commands.Command{commands.Succeed{Token: j.Token, Result: []byte("result")},
			commands.Fail{Token: j.Token, Code: "exit"}, commands.Release{Token: j.Token}}[b.random.IntN(3)])
	case n == 9:
		apply(any(), commands.Retry{Reason: "again"})
	case n == 10:
		apply(any(), commands.Cancel{Reason: "stop"})
	default:
		apply(any(), commands.Erase{Reason: "a wish"})
	}
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// TestVerifyStoreNextToWriters verifies in steps of a few events, between which jobs are enqueued, end, are
// retried and erased. No step leaves a snapshot open, and nothing is found, until a row is altered.
func TestVerifyStoreNextToWriters(t *testing.T) {
	t.Parallel()
	store := ledgertest.Open(t)
	b := &busy{t: t, random: rand.New(rand.NewPCG(1, 2)), now: ledgertest.Epoch}
	store.Now = func() time.Time { return b.now }
	b.s = &commands.Service{Store: store}
	for range 150 {
		b.act()
	}
	check := func() audit.Verified {
		t.Helper()
		steps := 0
		v, err := audit.VerifyInSteps(t.Context(), store, 0, 7, func() {
			if steps++; steps%5 == 0 {
				if whole, err := store.Checkpoint(t.Context()); !whole || err != nil {
					t.Errorf("before step %d a snapshot is open: %v", steps, err)
				}
			}
			for range b.random.IntN(7) {
				b.act()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if steps < 10 {
			t.Errorf("there were %d steps", steps)
		}
		return v
	}
	for range ledgertest.Size(2, 3, 4) { // each multiplies the ledger, which grows while it is verified
		if v := check(); len(v.Findings) > 0 {
			t.Fatalf("%+v", v.Findings)
		}
	}
	err := store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE jobs SET max_attempts = 77 WHERE n = 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := check(); len(v.Findings) != 1 || v.Findings[0].Code != audit.FindDiffers {
		t.Errorf("an altered row: %+v", v.Findings)
	}
}
