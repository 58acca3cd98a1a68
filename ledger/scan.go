package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/row"
	"jobledger/ledger/internal/session"
	"jobledger/ledger/prefetch"
)

// Scan selects what Tx.Scan reads. The zero Scan is the whole ledger.
type Scan struct {
	After  int64 // pos greater than this
	Until  int64 // pos up to this; 0: to the end
	Strict bool  // set Scanned.NonCanonical
}

// Scanned is an event as its row alone has it: only enqueued has a Job, only claimed and refused have a
// Token. The caller that folds the events knows those of the other events.
type Scanned struct {
	event.Event
	NonCanonical string // a readable column that is not as this program writes it; "": none
}

// EventError reports an event that cannot be read. It unwraps to the reason.
type EventError struct {
	Pos int64
	Err error
}

// Error names the event and the reason.
func (e *EventError) Error() string { return fmt.Sprintf("event %d: %v", e.Pos, e.Err) }

// Unwrap returns the reason.
func (e *EventError) Unwrap() error { return e.Err }

// Scan yields events in the order of pos, a batch at a time; a batch is valid until the next one. In a long
// ledger it reads ahead concurrently with the caller. It costs less than Events, because it keeps no state
// between events. An error ends it; if it is an EventError, the events before that one were yielded.
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

// readHere reads on the connection of tx, and yields each batch before it reads the next.
func (tx *Tx) readHere(ctx context.Context, what Scan, yield func([]Scanned, error) bool) {
	r := &pageReader{tx: tx, after: what.After, until: what.Until, strict: what.Strict}
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

// scanAhead is the number of events from which further connections pay off. A variable for the tests.
var scanAhead int64 = 20_000

// readAhead reads the committed events concurrently with the caller. Those are all or nearly all events, and
// events never change. If some have left the ledger meanwhile, it reads none. It advances what.After; the
// caller reads the rest itself, which may be everything. done means that the scan has ended.
func (tx *Tx) readAhead(ctx context.Context, what *Scan, yield func([]Scanned, error) bool) (done bool) {
	names, err := tx.store.openSnapshot(ctx)
	if err != nil {
		return false
	}
	defer names.disconnect()
	tail, err := names.Tail(ctx)
	if err != nil || tail <= what.After {
		return false
	}
	if same, err := tx.sameEvents(ctx, names); err != nil || !same {
		return false
	}
	until := min(what.Until, tail)
	if tx.store.engine.CheckReplaced() != nil { // the snapshot may be of another ledger
		return false
	}
	r := &pageReader{tx: names, after: what.After, until: until, strict: what.Strict}
	for batch, err := range prefetch.Pages(scanPage, func(batch []Scanned) ([]Scanned, error) {
		return r.next(ctx, batch)
	}) {
		if len(batch) > 0 {
			if !yield(batch, nil) {
				return true
			}
			what.After = batch[len(batch)-1].Pos
		}
		if err != nil {
			return false // the read through tx will report why
		}
	}
	what.After = until
	return false
}

const pageOfEvents = `SELECT ` + row.Columns + ` FROM events e
WHERE e.pos > ?1 AND e.pos <= ?2 ORDER BY e.pos LIMIT ?3`

// pageReader reads and decodes events in the order of pos, a page at a time.
type pageReader struct {
	tx           *Tx
	after, until int64
	strict       bool
	records      []row.Row
	text         []byte // an event's data as Append would write it
}

// next reads the next page into batch, whose events it overwrites. With an EventError it returns the events
// before it.
func (r *pageReader) next(ctx context.Context, batch []Scanned) (_ []Scanned, err error) {
	r.records = r.records[:0]
	err = r.tx.Each(ctx, func(values []driver.Value) bool {
		r.records = append(r.records, row.Read(values))
		r.after = r.records[len(r.records)-1].Pos
		return true
	}, pageOfEvents, r.after, r.until, scanPage)
	if err != nil {
		return nil, err
	}
	batch = batch[:0]
	for i := range r.records {
		rec := &r.records[i]
		batch = append(batch, Scanned{})
		s := &batch[i]
		if err := rec.Decode(ctx, r.tx, &s.Event); err != nil {
			return batch[:i], &EventError{rec.Pos, err}
		}
		switch k := s.Kind(); {
		case k == event.KindEnqueued:
			s.Job = event.JobID(rec.ULID)
		case k.StoresToken():
			s.Token = rec.ULID
		}
		if r.strict {
			s.NonCanonical, r.text = rec.NonCanonical(&s.Event, r.text)
		}
	}
	return batch, nil
}

// ReadConcurrently runs fn in a goroutine on a snapshot that begins now and shows what is committed, at least
// what the snapshot of tx shows. The caller calls wait, which returns fn's error. If a server gives no
// connection for it, wait runs fn with tx.
func (tx *Tx) ReadConcurrently(ctx context.Context, fn func(*Tx) error) (wait func() error) {
	done := make(chan error, 1)
	go func() {
		b, err := tx.store.openSnapshot(ctx)
		if err != nil {
			done <- &notOpened{err}
			return
		}
		defer b.disconnect()
		done <- fn(b)
	}()
	return func() error {
		err := <-done
		if no, ok := err.(*notOpened); ok {
			if err = no.error; errors.Is(err, ErrBusy) && tx.store.peeks != nil {
				return fn(tx)
			}
		}
		return err
	}
}

// notOpened says that there was no connection for a function.
type notOpened struct{ error }

// openSnapshot begins a snapshot on a connection of its own; disconnect it. It bypasses the reader pool, so a
// caller that holds a reader already cannot deadlock.
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
	return newReadTx(s, session.New(r), at), nil
}

// disconnect closes the connection of openSnapshot.
func (tx *Tx) disconnect() { _ = tx.session.Close() }
