package audit

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// findHorizon finds out up to where events may have left the ledger. If the verified part ends at an event
// that may have left, it is verified again.
func (v *verifier) findHorizon(ctx context.Context) error {
	if v.whole {
		return nil
	}
	r, err := projection.Removed(ctx, v.tx)
	if _, damaged := errors.AsType[*ledger.EventError](err); damaged {
		return nil // the scan of the events will say so
	}
	if err != nil {
		return err
	}
	v.horizon = r.Hi
	v.began = r.Pos
	if v.Since > 0 && v.Since <= v.horizon {
		v.Since, v.Until = 0, 0
	}
	v.fold.Gaps.Horizon = v.horizon
	return nil
}

// removed checks that what has left was archived before, and counts it.
func (v *verifier) removed(e *event.Event, b *event.Removed) {
	if b.Hi > v.archivedTo || b.Hi < v.removal.Hi {
		v.at(e, FindRemoved, "it says that archived events up to %d left; these are up to %d, and events up to "+
			"%d had left", b.Hi, v.archivedTo, v.removal.Hi)
	}
	v.removal.Add(b, e.Pos, e.At)
}

// keptBodies are those of events that have left.
const keptBodies = `SELECT count(*) FROM bodies b WHERE b.pos <= ? AND NOT EXISTS
(SELECT 1 FROM events e WHERE e.pos = b.pos)`

// left compares what is left of the archived events, and the keys that were kept, with what the removed
// events say, and the table segments with the archived events.
func (v *verifier) left(ctx context.Context) error {
	if v.whole {
		return v.segments(ctx)
	}
	r, err := projection.Removed(ctx, v.tx)
	if err != nil {
		return v.stop(v.last.Pos, err)
	}
	var left, keys, kept int64
	if err := table.ScanOne(ctx, v.tx, `SELECT count(*) FROM events WHERE pos <= ?`, []any{&left},
		r.Hi); err != nil {
		return err
	}
	if want := r.Hi - r.Events; left != want {
		v.find(Finding{Code: FindRemoved, Field: "events", Detail: fmt.Sprintf(
			"%d of the events up to %d are left, and %d should be, by what has left", left, r.Hi, want)})
	}
	if err := table.ScanOne(ctx, v.tx, `SELECT count(*) FROM past`, []any{&keys}); err != nil {
		return err
	}
	if keys != r.Keys {
		v.find(Finding{Code: FindRemoved, Field: "past", Detail: fmt.Sprintf(
			"the table past has %d keys; by what has left, it should have %d", keys, r.Keys)})
	}
	if err := table.ScanOne(ctx, v.tx, keptBodies, []any{&kept}, r.Hi); err != nil {
		return err
	}
	if kept != r.Kept {
		v.find(Finding{Code: FindRemoved, Field: "bodies", Detail: fmt.Sprintf(
			"there are %d payloads and results of jobs that left; by the events there should be %d", kept,
			r.Kept)})
	}
	stored, err := projection.StoredDeparted(ctx, v.tx)
	if err != nil {
		return err
	}
	if r.Departed.Unnamed < 0 {
		v.find(Finding{Code: FindRemoved, Field: "left", Detail: fmt.Sprintf("of %d jobs that did not leave, an "+
			"`archive_described` says in which queues they were", -r.Departed.Unnamed)})
	}
	if !stored.Equal(r.Departed) {
		v.find(Finding{Code: FindRemoved, Field: "departed", Detail: fmt.Sprintf("the table departed has %d jobs, "+
			"and by what has left it should have %d, or they are in other queues and states", stored.Jobs(),
			r.Departed.Jobs())})
	}
	if err := v.freedKeys(ctx); err != nil {
		return err
	}
	return v.segments(ctx)
}

// freedKeys reports keys of jobs that have left which other jobs now have.
func (v *verifier) freedKeys(ctx context.Context) error {
	rows, err := v.tx.Query(ctx, `SELECT p.id, j.id, p.key FROM past p JOIN jobs j ON j.queue = p.queue
AND (j.key = p.key OR j.id = p.id) ORDER BY 1 LIMIT ?`, maxFindings)
	var was, is event.JobID
	var key string
	return table.Each(rows, err, []any{&was, &is, &key}, func() error {
		v.find(Finding{Code: FindKey, Job: is,
			Detail: fmt.Sprintf("the key %q is that of the job %s, which has left the ledger", key, was)})
		return nil
	})
}

// segments compares the table segments with the archived events, as far as these follow on each other.
func (v *verifier) segments(ctx context.Context) error {
	closed, err := projection.Segments(ctx, v.tx, 0)
	if err != nil {
		return nil // the scan of the events has said so
	}
	type row struct{ lo, pos int64 }
	want := make(map[int64]row)
	last := int64(0)
	for _, s := range closed {
		if s.Lo == last && s.Hi < s.Pos {
			want[s.Hi], last = row{s.Lo, s.Pos}, s.Hi
		}
	}
	rows, err := v.tx.Query(ctx, `SELECT hi, lo, pos FROM segments ORDER BY hi`)
	var hi int64
	var r row
	wrong := 0
	err = table.Each(rows, err, []any{&hi, &r.lo, &r.pos}, func() error {
		if want[hi] != r {
			wrong++
		}
		delete(want, hi)
		return nil
	})
	if err != nil {
		return err
	}
	for hi := range want {
		if hi > v.horizon { // without its row, nothing of it can leave
			delete(want, hi)
		}
	}
	if wrong+len(want) > 0 {
		v.find(Finding{Code: FindArchived, Field: "segments",
			Detail: fmt.Sprintf("%d rows of the table segments are not what the archived events say",
				wrong+len(want))})
	}
	return nil
}
