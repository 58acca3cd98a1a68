package audit

import (
	"context"
	"iter"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// storedBodies reads the stored bodies in step with the events: both are in the order of pos.
type storedBodies struct {
	next func() (ledger.StoredBody, error, bool)
	body ledger.StoredBody // the one not yet passed
	more bool
}

// openBodies begins to read the bodies after the last event that was checked; stop ends it.
func (v *verifier) openBodies(ctx context.Context) (stop func(), err error) {
	v.bodies.next, stop = iter.Pull2(v.tx.BodiesAfter(ctx, v.Until))
	return stop, v.bodies.pass()
}

func (s *storedBodies) pass() (err error) {
	s.body, err, s.more = s.next()
	return err
}

// body checks the payload of enqueued and replaced, and the result of succeeded. j is the job after e.
func (v *verifier) body(ctx context.Context, e *event.Event, j *projection.Job) error {
	if err := v.unclaimed(e.Pos); err != nil {
		return err
	}
	var digest string
	var size int64
	switch b := e.Body.(type) {
	case *event.Enqueued:
		digest, size = b.PayloadSHA256, b.PayloadBytes
	case *event.Replaced:
		digest, size = b.PayloadSHA256, b.PayloadBytes
	case *event.Succeeded:
		digest, size = b.ResultSHA256, b.ResultBytes
	}
	if digest == "" {
		return v.unclaimedAt(e.Pos)
	}
	stored := v.bodies.more && v.bodies.body.Pos == e.Pos
	if !stored {
		gone, err := v.erasedLater(ctx, e)
		if err == nil && !gone {
			gone, err = v.tx.BodyLeft(ctx, e.N, e.Pos)
		}
		if err == nil && !gone {
			v.lose(Finding{Code: FindBody, Pos: e.Pos, Job: e.Job, Detail: "its body is missing and was not erased"})
		}
		return err
	}
	b := v.bodies.body
	if e.Kind() == event.KindEnqueued {
		j.Salt = b.Salt // the results will need it
	} else if j.Salt == nil {
		var err error
		if j.Salt, _, _, err = v.tx.Body(ctx, e.N); err != nil {
			return err
		}
	}
	salted := e.Kind() != event.KindEnqueued && b.Salt != nil // only the first payload has a salt of its own
	if int64(len(b.Body)) != size || ledger.Digest(j.Salt, b.Body) != digest || salted {
		v.at(e, FindBody, "its body of %d bytes is not the one of %d bytes that the event names", len(b.Body), size)
	}
	return v.bodies.pass()
}

func (v *verifier) lose(f Finding) {
	if v.lostCount++; len(v.lost) < maxFindings {
		v.lost = append(v.lost, f)
	}
}

// unclaimedAt reports a stored body of the event at pos, which has none.
func (v *verifier) unclaimedAt(pos int64) error {
	if v.bodies.more && v.bodies.body.Pos == pos {
		v.find(Finding{Code: FindBody, Pos: pos, Detail: "a body is stored for an event that has none"})
		return v.bodies.pass()
	}
	return nil
}

// unclaimed reports stored bodies before pos that belong to no event. Those of events that may have left are
// counted at the end.
func (v *verifier) unclaimed(before int64) error {
	for v.bodies.more && v.bodies.body.Pos < before {
		if v.bodies.body.Pos <= v.horizon {
			if err := v.bodies.pass(); err != nil {
				return err
			}
			continue
		}
		v.find(Finding{Code: FindBody, Pos: v.bodies.body.Pos,
			Detail: "a body is stored for an event that has none"})
		if err := v.bodies.pass(); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) erasedLater(ctx context.Context, e *event.Event) (bool, error) {
	f := ledger.Filter{Job: e.N, Kinds: []event.Kind{event.KindErased}, After: e.Pos}
	_, found, err := v.tx.OneEvent(ctx, f)
	return found, err
}

const bodiesOfErased = `SELECT count(*) FROM bodies b JOIN events e ON e.pos = b.pos
WHERE e.job = ? AND e.pos < ?`

// erasure checks the counts of an erased event, and that the bodies are gone. After an import that lacked
// bodies the counts may be smaller.
func (v *verifier) erasure(ctx context.Context, e *event.Event, b *event.Erased) error {
	count, bytes := 0, int64(0)
	kinds := []event.Kind{event.KindEnqueued, event.KindReplaced, event.KindSucceeded}
	for e, err := range v.tx.Events(ctx, ledger.Filter{Job: e.N, Kinds: kinds, Until: e.Pos}) {
		if err != nil {
			return err
		}
		switch b := e.Body.(type) {
		case *event.Enqueued:
			count, bytes = count+1, bytes+b.PayloadBytes
		case *event.Replaced:
			count, bytes = count+1, bytes+b.PayloadBytes
		case *event.Succeeded:
			if b.ResultSHA256 != "" {
				count, bytes = count+1, bytes+b.ResultBytes
			}
		}
	}
	equal := b.Bodies == count && b.Bytes == bytes
	if fewer := b.Bodies <= count && b.Bytes <= bytes; !equal && !(v.incomplete && fewer) {
		v.at(e, FindCount, "%d bodies of %d bytes were erased, but the job had %d of %d bytes",
			b.Bodies, b.Bytes, count, bytes)
	}
	var left int64
	if err := table.ScanOne(ctx, v.tx, bodiesOfErased, []any{&left}, e.N, e.Pos); err != nil {
		return err
	}
	if left > 0 {
		v.at(e, FindBody, "bodies of the job are still there: %d", left)
	}
	return nil
}

// importedLater accepts the missing bodies that an import after the last event checked declares.
func (v *verifier) importedLater(ctx context.Context) error {
	f := ledger.Filter{Kinds: []event.Kind{event.KindImported}, After: v.bound}
	for e, err := range v.tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		if b := e.Body.(*event.Imported); v.lostCount <= b.MissingBodies {
			v.lost, v.lostCount = nil, 0
		}
	}
	return nil
}

// imported accepts the missing bodies that an import declares; some may have been erased since.
func (v *verifier) imported(e *event.Event, b *event.Imported) {
	v.removal = projection.Removal{} // it had left another ledger
	if b.Events != e.Pos-1 {
		v.at(e, FindCount, "its count of events that were imported is %d, but %d are before it", b.Events,
			e.Pos-1)
	}
	if !b.AsOf.IsZero() && b.AsOf.Before(v.last.At) {
		v.at(e, FindTime, "a copy as of %s, but its last event was at %s", event.FormatTime(b.AsOf),
			event.FormatTime(v.last.At))
	}
	if v.lostCount <= b.MissingBodies {
		v.lost, v.lostCount = nil, 0
	}
	v.incomplete = v.incomplete || b.MissingBodies > 0
}
