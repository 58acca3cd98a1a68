package attempts_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	_ "jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/attempts"
)

// beating returns a ledger in which three processes of two names work on jobs, with heartbeats after very
// different times.
func beating(t *testing.T) *ledger.Store {
	t.Helper()
	s := commandstest.New(t)
	r := rand.New(rand.NewPCG(1, 2))
	ctx := t.Context()
	for i := range 60 {
		who := event.Worker{Name: []string{"a", "a", "b"}[i%3], Boot: []string{"boot-1", "boot-2", "boot-3"}[i%3],
			Host: "build7", PID: 7 + i%3}
		_, err := s.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail"}, commands.Enqueue{Queue: "mail"})
		check(t, err)
		held, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Worker: who, Limit: 1 + i%2,
			Lease: time.Hour})
		check(t, err)
		for range r.IntN(5) {
			for k := range held {
				s.Now = s.Now.Add(time.Duration(r.Int64N(int64(20*time.Minute) >> r.IntN(12))).Truncate(time.Microsecond))
				held[k], err = s.Heartbeat(ctx, held[k], commands.Heartbeat{Lease: time.Hour})
				check(t, err)
			}
		}
		for _, job := range held {
			_, err = s.Complete(ctx, job, nil)
			check(t, err)
		}
	}
	return s.Store
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHeartbeatGaps compares the gaps of each process, in windows of several lengths, with those that its
// events have one after the other.
func TestHeartbeatGaps(t *testing.T) {
	s := beating(t)
	ctx := t.Context()
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		for _, window := range [][2]int64{{0, tail}, {tail / 3, tail / 2}, {tail / 2, tail/2 + 1}, {7, 7}} {
			from, err := projection.AtPos(ctx, tx, window[0])
			if err != nil {
				return err
			}
			to, err := projection.AtPos(ctx, tx, window[1])
			if err != nil {
				return err
			}
			want := make(map[event.Worker]*attempts.Gaps)
			signs := make(map[int64]time.Time)
			for e, err := range tx.Events(ctx, ledger.Filter{Until: to.Pos}) {
				if err != nil {
					return err
				}
				if e.Kind() == event.KindHeartbeat && e.Pos > from.Pos {
					g := want[e.Worker]
					if g == nil {
						g = &attempts.Gaps{Worker: e.Worker, Counts: make([]int64, len(attempts.GapEnds)+1)}
						want[e.Worker] = g
					}
					gap, i := e.At.Sub(signs[e.N]), 0
					for i < len(attempts.GapEnds) && gap > attempts.GapEnds[i] {
						i++
					}
					if g.Counts[i]++; gap > g.Longest {
						g.Longest, g.Pos = gap, e.Pos
					}
				}
				if e.Seq > 0 {
					signs[e.N] = e.At
				}
			}
			got, err := attempts.HeartbeatGaps(ctx, tx, from, to)
			if err != nil {
				return err
			}
			if window[0] == 0 && len(got) != 3 || len(got) != len(want) {
				t.Errorf("%v: the gaps of %d processes, want %d", window, len(got), len(want))
			}
			for _, g := range got {
				if !reflect.DeepEqual(&g, want[g.Worker]) {
					t.Errorf("%v: got %+v, want %+v", window, g, want[g.Worker])
				}
				known, err := attempts.List(ctx, tx, attempts.Filter{From: from, To: to, Worker: g.Worker.Name})
				if err != nil {
					return err
				}
				of, err := attempts.HeartbeatGapsOf(ctx, tx, from, to, g.Worker.Name, known)
				if err != nil {
					return err
				}
				found := false
				for _, one := range of {
					found = found || reflect.DeepEqual(one, g)
				}
				if !found {
					t.Errorf("%v: the gaps of %s are %+v, want among them %+v", window, g.Worker.Name, of, g)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGapsAdd: the sum of two processes has the counts of both, and the longer gap.
func TestGapsAdd(t *testing.T) {
	a := attempts.Gaps{Counts: make([]int64, len(attempts.GapEnds)+1), Longest: time.Second, Pos: 4}
	a.Counts[0] = 2
	b := attempts.Gaps{Counts: make([]int64, len(attempts.GapEnds)+1), Longest: time.Hour, Pos: 9}
	b.Counts[len(attempts.GapEnds)] = 1
	var sum attempts.Gaps
	sum.Add(b)
	sum.Add(a)
	if sum.Sum() != 3 || sum.Longest != time.Hour || sum.Pos != 9 || sum.Counts[0] != 2 {
		t.Errorf("got %+v", sum)
	}
}
