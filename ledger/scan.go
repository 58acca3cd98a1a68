package ledger

import (
	"context"
	"fmt"
	"iter"
)

// Scan says what Tx.Scan reads. The zero Scan is the whole ledger.
type Scan struct {
	After  int64 // pos greater than this
	Until  int64 // pos up to this; 0: to the end
	Strict bool  // set Scanned.NonCanonical
}

// Scanned is an event as its row alone has it: Job stands in enqueued only, and Token in claimed and refused. Whoever
// folds the events knows the others'.
type Scanned struct {
	Event
	NonCanonical string // a readable column that is not as this program writes it; "": none
}

// EventError says which event cannot be read. It unwraps to what is wrong with it.
type EventError struct {
	Pos int64
	Err error
}

// Error says which event, and why.
func (e *EventError) Error() string { return fmt.Sprintf("event %d: %v", e.Pos, e.Err) }

// Unwrap returns why.
func (e *EventError) Unwrap() error { return e.Err }

// Scan yields events in the order of pos, a batch at a time; a batch is valid until the next one. Of a long ledger
// it reads ahead, beside the caller. It costs less than Events and remembers nothing of what it has read. An error ends
// it; where that is an EventError, the events before that one have been yielded.
func (tx *Tx) Scan(ctx context.Context, what Scan) iter.Seq2[[]Scanned, error] {
	return func(yield func([]Scanned, error) bool) {
		tail, err := int64(0), tx.flush()
		if err == nil {
			tail, err = tx.Tail(ctx)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if what.Until == 0 || what.Until > tail {
			what.Until = tail
		}
		if what.Until-what.After > scanAhead {
			if done := tx.readAhead(ctx, &what, yield); done {
				return
			}
		}
		if what.After < what.Until {
			tx.readHere(ctx, what, yield)
		}
	}
}

// readHere reads on tx's own connection, and gives each batch away before it reads the next.
func (tx *Tx) readHere(ctx context.Context, what Scan, yield func([]Scanned, error) bool) {
	r := &pageReader{tx: tx, rows: &pagedRows{tx: tx, after: what.After, until: what.Until}, strict: what.Strict}
	for {
		batch, err := r.next(ctx, nil)
		if len(batch) > 0 && !yield(batch, nil) {
			return
		}
		if err != nil {
			yield(nil, err)
		}
		if err != nil || len(batch) < scanPage {
			return
		}
	}
}

const scanPage = 512 // events read in one step

// scanAhead is for how many events further connections pay; a variable for the tests only.
var scanAhead int64 = 20_000

// readAhead reads, beside the caller, what is committed, which is all or nearly all, and is as it was when tx began:
// events do not change. It moves what.After on; the caller reads the rest, which may be all, by itself. done means that
// there is nothing more to do.
func (tx *Tx) readAhead(ctx context.Context, what *Scan, yield func([]Scanned, error) bool) (done bool) {
	names, err := tx.store.openSnapshot(ctx)
	if err != nil {
		return false
	}
	defer names.end()
	tail, err := names.Tail(ctx)
	if err != nil || tail <= what.After {
		return false
	}
	until := min(what.Until, tail)
	var rows recordSource = &pagedRows{tx: names, after: what.After, until: until}
	raw, err := tx.store.engine.RawScan(allEvents, what.After, until)
	if err != nil {
		return false
	}
	if raw != nil {
		defer raw.Close()
		rows = &rawRows{raw}
	}
	if tx.store.engine.CheckReplaced() != nil { // the snapshot may be of another ledger
		return false
	}
	r := &pageReader{tx: names, rows: rows, strict: what.Strict}
	pages := fillAhead(func(batch []Scanned) ([]Scanned, error) { return r.next(ctx, batch) })
	defer pages.end()
	for p := range pages.full {
		if len(p.batch) > 0 {
			if !yield(p.batch, nil) {
				return true
			}
			what.After = p.batch[len(p.batch)-1].Pos
		}
		if p.err != nil {
			return false // whoever reads on will say why
		}
		pages.empty <- p.batch
	}
	what.After = until
	return false
}

// pagesAhead are two pages, of which one is filled while the other is looked at.
type pagesAhead struct {
	full  chan scannedPage
	empty chan []Scanned
	stop  chan struct{}
}

type scannedPage struct {
	batch []Scanned
	err   error
}

// fillAhead calls next in a goroutine of its own, until it fails or gives less than a page. Call end, which waits for it.
func fillAhead(next func(batch []Scanned) ([]Scanned, error)) *pagesAhead {
	p := &pagesAhead{make(chan scannedPage), make(chan []Scanned, 2), make(chan struct{})}
	p.empty <- nil
	p.empty <- nil
	go func() {
		defer close(p.full)
		for {
			var page scannedPage
			select {
			case batch := <-p.empty:
				page.batch, page.err = next(batch)
			case <-p.stop:
				return
			}
			select {
			case p.full <- page:
			case <-p.stop:
				return
			}
			if page.err != nil || len(page.batch) < scanPage {
				return
			}
		}
	}()
	return p
}

func (p *pagesAhead) end() {
	close(p.stop)
	for range p.full { // until it is closed
	}
}

// pageReader makes pages of events from rows.
type pageReader struct {
	tx      *Tx // for the names
	rows    recordSource
	strict  bool
	records []record
	text    []byte // an event's data, written once more
}

// next reads the next page into batch, whose events it overwrites. The events before a wrong one come with its error.
func (r *pageReader) next(ctx context.Context, batch []Scanned) (_ []Scanned, err error) {
	if r.records, err = r.rows.read(ctx, r.records[:0]); err != nil {
		return nil, err
	}
	batch = batch[:0]
	for i := range r.records {
		rec := &r.records[i]
		batch = append(batch, Scanned{})
		s := &batch[i]
		if err := r.tx.event(ctx, rec, &s.Event); err != nil {
			return batch[:i], &EventError{rec.pos, err}
		}
		switch s.Kind() {
		case KindEnqueued:
			s.Job = JobID(rec.ulid)
		case KindClaimed, KindRefused, KindStopped:
			s.Token = rec.ulid
		}
		if r.strict {
			s.NonCanonical = r.nonCanonical(rec, &s.Event)
		}
	}
	return batch, nil
}

// ReadConcurrently runs fn in a goroutine on a snapshot that begins now and shows what is committed, at least what the
// snapshot of tx shows. The caller calls wait, which returns fn's error.
func (tx *Tx) ReadConcurrently(ctx context.Context, fn func(*Tx) error) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		b, err := tx.store.openSnapshot(ctx)
		if err == nil {
			defer b.end()
			err = fn(b)
		}
		done <- err
	}()
	return func() error { return <-done }
}

// openSnapshot begins a snapshot on a connection of its own; end it. It bypasses the reader pool, so a caller that
// holds a reader already cannot deadlock.
func (s *Store) openSnapshot(ctx context.Context) (*Tx, error) {
	r, err := s.engine.OpenReader(ctx)
	if err != nil {
		return nil, err
	}
	at, err := s.engine.BeginSnapshot(ctx, r)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return newReadTx(s, &session{Session: r}, at), nil
}

// end closes the connection of openSnapshot.
func (tx *Tx) end() { _ = tx.session.Close() }
