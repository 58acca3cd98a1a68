package view

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/status"
)

// What is read once for all who look, and fed event by event, is at each position of the bad night what the
// events up to there add up to: the claims that are live are those of the jobs that were held then, each job
// that was queued is known with the time at which it is ready, and what was counted is what a fresh reader
// counts.
func TestFedEventByEventEqualsTheFold(t *testing.T) {
	s := nighttest.Import(t)
	every := ledgertest.Size(int64(501), 251, 1)
	afresh := ledgertest.Size(int64(2001), 1501, 83)
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if err != nil {
			return err
		}
		var fed Totals
		var moments Moments
		var minutes Minutes
		none := func(map[string]*QueueTotals) {}
		for pos := int64(1); pos <= tail; pos++ {
			if _, whole, err := fed.refresh(t.Context(), tx, pos, none); err != nil || !whole {
				t.Fatal(whole, err)
			}
			if err := moments.refresh(t.Context(), tx, pos); err != nil {
				return err
			}
			at, err := projection.AtPos(t.Context(), tx, pos)
			if err != nil {
				return err
			}
			if err := minutes.refresh(t.Context(), tx, pos, at.At); err != nil {
				return err
			}
			if pos%every == 0 || pos == tail {
				if err := sameAsThen(t, tx, &fed, pos); err != nil {
					return err
				}
			}
			if pos%afresh != 0 && pos != tail {
				continue
			}
			var whole Totals
			if _, _, err := whole.refresh(t.Context(), tx, pos, none); err != nil {
				return err
			}
			if !reflect.DeepEqual(fed.queues, whole.queues) || !maps.Equal(fed.ready, whole.ready) ||
				!maps.Equal(fed.signs, whole.signs) {
				t.Errorf("at %d a fresh reader counts something else", pos)
			}
			if err := samePaces(t, tx, &minutes, at); err != nil {
				return err
			}
			var all Moments
			if err := all.refresh(t.Context(), tx, pos); err != nil {
				return err
			}
			if !slices.Equal(moments.marks, all.marks) || moments.pos != pos {
				t.Errorf("at %d a fresh reader has other moments", pos)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMinutes reads the bad night from its first event on: the time of one event.
func BenchmarkMinutes(b *testing.B) {
	s := nighttest.Import(b)
	events := int64(0)
	err := s.Store.Read(b.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(b.Context())
		if err != nil {
			return err
		}
		events = tail
		for b.Loop() {
			m := Minutes{queues: make(map[string][]minute)}
			if err := m.refresh(b.Context(), tx, tail, time.Unix(0, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

// samePaces compares minutes with those that only the hours before at make.
func samePaces(t *testing.T, tx *ledger.Tx, minutes *Minutes, at projection.Moment) error {
	t.Helper()
	queues, err := status.Queues{At: at}.Read(t.Context(), tx)
	if err != nil {
		return err
	}
	var afresh Minutes
	if err := afresh.refresh(t.Context(), tx, at.Pos, at.At); err != nil {
		return err
	}
	got, want := minutes.paces(queues, at.At), afresh.paces(queues, at.At)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("at %d the paces are %+v, want %+v", at.Pos, got, want)
	}
	for _, q := range queues {
		depth := want[q.Name].Depth
		if n := depth[len(depth)-1]; n != q.Jobs[event.Queued] {
			t.Errorf("at %d the last depth of %s is %d, want %d", at.Pos, q.Name, n, q.Jobs[event.Queued])
		}
	}
	return nil
}

// The minutes that are kept have a limit, by age and by number, and the depth does not depend on those that
// were dropped.
func TestMinutesDropTheOldest(t *testing.T) {
	m := Minutes{from: time.Unix(0, 0).UTC(), queues: make(map[string][]minute)}
	const hours = 9
	for at := range int64(60 * hours) {
		for _, queue := range []string{"mail", "render"} {
			m.add(&follow.Transition{Kind: event.KindEnqueued, At: at * 60e6, To: event.Queued, Queue: queue, Wait: -1,
				Run: -1})
		}
	}
	now := time.Unix(hours*3600-1, 0)
	before := m.pace(m.queues["mail"], 60*hours, now)
	m.drop(now)
	if most := 2 * (int(minutesKept/time.Minute) + 1); m.count > most || m.count < most-4 {
		t.Errorf("%d minutes are kept, want %d", m.count, most)
	}
	if after := m.pace(m.queues["mail"], 60*hours, now); !slices.Equal(after.Depth, before.Depth) {
		t.Errorf("the depth is %v, and was %v before", after.Depth, before.Depth)
	}
	m.count = maxMinutes + 1
	m.drop(now)
	if most := int(minutesKept / time.Minute); m.count > most+4 || m.count < most-4 {
		t.Errorf("%d minutes are kept, want half of them", m.count)
	}
}

// sameAsThen compares fed with the jobs as they were at pos.
func sameAsThen(t *testing.T, tx *ledger.Tx, fed *Totals, pos int64) error {
	t.Helper()
	at, err := projection.AtPos(t.Context(), tx, pos)
	if err != nil {
		return err
	}
	then, err := projection.ListAsOf(t.Context(), tx, projection.Filter{}, at)
	if err != nil {
		return err
	}
	held := make(map[int64]int) // attempts, by job
	for _, c := range fed.claims.Live() {
		held[c.N] = c.Attempt
	}
	queued := 0
	kinds := make(map[string]int64) // jobs that were enqueued, by queue
	for _, j := range then {
		kinds[j.Queue]++
		attempt, isHeld := held[j.N]
		if want := j.State == event.ClaimedState || j.State == event.Running; isHeld != want ||
			isHeld && attempt != j.Attempt {
			t.Errorf("at %d job %s is %s, attempt %d; it has a live claim: %t, attempt %d", pos, j.ID, j.State,
				j.Attempt, isHeld, attempt)
		}
		if j.State == event.Queued {
			queued++
			ready, known := fed.ready[j.N]
			if at := event.FromMicros(ready.At()); !known || at.Before(j.RunAt) {
				t.Errorf("at %d job %s is to run at %s, and is ready at %s", pos, j.ID, j.RunAt, at)
			}
		}
	}
	if len(fed.ready) != queued {
		t.Errorf("at %d %d jobs are ready or will be, want %d", pos, len(fed.ready), queued)
	}
	for queue, n := range kinds {
		if got := fed.queues[queue].Kinds[event.KindEnqueued]; got != n {
			t.Errorf("at %d %d jobs of %s were enqueued, want %d", pos, got, queue, n)
		}
	}
	return nil
}
