package ledger

import (
	"context"
	"iter"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/row"
)

// Limits of one page of Lines.
const (
	linesPage      = 4000
	linesPageBytes = 4 << 20 // of bodies
)

// Lines yields the events that f selects (except Limit and Last) in the order of pos, and their stored bodies
// if bodies is true. It reads a page at a time and holds no snapshot while the caller works on it, so neither
// memory nor the -wal file grows with the ledger. It ends at the event that was the last when it began. An
// error ends it.
func (s *Store) Lines(ctx context.Context, f Filter, bodies bool) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		tail, err := Read(ctx, s, func(tx *Tx) (int64, error) { return tx.Tail(ctx) })
		if f.Until == 0 || f.Until > tail {
			f.Until = tail
		}
		f.Limit, f.Last = linesPage, false
		var page []event.Line
		known := make(row.Latest)
		for more := err == nil && f.After < f.Until; more; {
			more = false
			page = page[:0]
			err = s.Read(ctx, func(tx *Tx) (err error) {
				page, more, err = tx.page(ctx, page, f, bodies, known)
				return err
			})
			if err != nil {
				break
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
				f.After = page[i].Pos
				page[i] = event.Line{} // so that only the caller keeps its body
			}
		}
		if err != nil {
			yield(event.Line{}, err)
		}
	}
}

// page reads the next lines; more is false if they are the last.
func (tx *Tx) page(
	ctx context.Context, page []event.Line, f Filter, bodies bool, known row.Latest,
) (_ []event.Line, more bool, err error) {
	stored := func() (StoredBody, error, bool) { return StoredBody{}, nil, false }
	if bodies {
		next, stop := iter.Pull2(tx.BodiesAfter(ctx, f.After))
		defer stop()
		stored = next
	}
	b, err, ok := stored()
	if err != nil {
		return page, false, err
	}
	size := 0
	for e, err := range tx.eventsAfter(ctx, f, known) {
		if err != nil {
			return page, false, err
		}
		line := event.Line{Event: e}
		for ok && b.Pos < e.Pos {
			if b, err, ok = stored(); err != nil {
				return page, false, err
			}
		}
		if ok && b.Pos == e.Pos && event.BodyKey(e.Kind()) != "" {
			if line.Salt, line.Body = b.Salt, b.Body; line.Body == nil {
				line.Body = []byte{} // the driver gives nil for an empty one
			}
		}
		page = append(page, line)
		if size += len(line.Body); size >= linesPageBytes {
			return page, true, nil
		}
	}
	return page, len(page) == f.Limit, nil
}
