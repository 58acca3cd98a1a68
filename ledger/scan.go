package ledger

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"time"
)

// Scan says what Tx.Scan reads. The zero Scan is the whole ledger.
type Scan struct {
	After  int64 // pos greater than this
	Until  int64 // pos up to this; 0: to the end
	Strict bool  // find out Scanned.Odd
}

// Scanned is an event as its row alone has it: Job stands in enqueued only, and Token in claimed and refused. Whoever
// folds the events knows the others'.
type Scanned struct {
	Event
	Odd string // a column that is not as this program writes it, although it can be read; "": none
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
			if done := tx.scanAhead(ctx, &what, yield); done {
				return
			}
		}
		tx.scanHere(ctx, what, yield)
	}
}

// scanHere reads on tx's own connection, and gives each batch away before it reads the next.
func (tx *Tx) scanHere(ctx context.Context, what Scan, yield func([]Scanned, error) bool) (done bool) {
	p := newPages(tx, what)
	for p.more() {
		batch, err := p.next(ctx, nil)
		if len(batch) > 0 && !yield(batch, nil) {
			return true
		}
		if err != nil {
			yield(nil, err)
			return true
		}
	}
	return false
}

const (
	scanPage  = 512    // events read in one step
	scanAhead = 20_000 // events for which a second connection pays
)

// scanAhead reads on a connection of its own what is committed, which is all or nearly all, and is as it was when tx
// began: events do not change. It moves what.After on; where it gets nowhere, for whatever reason, the caller reads by
// itself.
func (tx *Tx) scanAhead(ctx context.Context, what *Scan, yield func([]Scanned, error) bool) (done bool) {
	beside, err := tx.store.beside(ctx)
	if err != nil {
		return false
	}
	defer beside.end()
	tail, err := beside.Tail(ctx)
	if err != nil || tail <= what.After {
		return false
	}
	first := *what
	first.Until = min(first.Until, tail)
	type page struct {
		batch []Scanned
		err   error
	}
	full, empty, stop, ended := make(chan page), make(chan []Scanned, 2), make(chan struct{}), make(chan struct{})
	empty <- nil
	empty <- nil
	go func() {
		defer close(ended)
		defer close(full)
		p := newPages(beside.Tx, first)
		for p.more() {
			batch, err := p.next(ctx, <-empty)
			select {
			case full <- page{batch, err}:
			case <-stop:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		close(stop)
		<-ended
	}()
	for p := range full {
		if len(p.batch) > 0 {
			if !yield(p.batch, nil) {
				return true
			}
			what.After = p.batch[len(p.batch)-1].Pos
		}
		if p.err != nil {
			yield(nil, p.err)
			return true
		}
		empty <- p.batch[:0]
	}
	what.After = first.Until
	return false
}

// pages reads events a page at a time.
type pages struct {
	tx   *Tx
	what Scan
	last bool           // there are no more
	rows []driver.Value // of a page, width after width
	text []byte         // an event's data, written once more
}

const eventWidth = 13

const pageOfEvents = `SELECT ` + eventColumns + ` FROM events e WHERE e.pos > ?1 AND e.pos <= ?2 ORDER BY e.pos LIMIT ?3`

func newPages(tx *Tx, what Scan) *pages {
	return &pages{tx: tx, what: what}
}

func (p *pages) more() bool { return !p.last && p.what.After < p.what.Until }

// next reads the next page into batch, whose events it overwrites.
func (p *pages) next(ctx context.Context, batch []Scanned) ([]Scanned, error) {
	p.rows = p.rows[:0]
	err := p.tx.Each(ctx, func(row []driver.Value) bool {
		p.rows = append(p.rows, row...)
		return true
	}, pageOfEvents, p.what.After, p.what.Until, scanPage)
	if err != nil {
		return nil, err
	}
	batch = batch[:0]
	for rows := p.rows; len(rows) > 0; rows = rows[eventWidth:] {
		batch = append(batch, Scanned{})
		s := &batch[len(batch)-1]
		r, err := recordOf(rows[:eventWidth])
		if err == nil {
			err = p.tx.event(ctx, &r, &s.Event)
		}
		if err != nil {
			return batch[:len(batch)-1], &EventError{r.pos, err}
		}
		s.Job, s.Token = JobID(r.namesJob()), r.namesToken()
		if p.what.Strict {
			s.Odd = p.odd(rows[:eventWidth], &s.Event)
		}
		p.what.After = r.pos
	}
	p.last = len(p.rows) < scanPage*eventWidth
	return batch, nil
}

// record is a row of events. What is null is zero or empty.
type record struct {
	pos, job, seq, kind, at, actor, worker int64
	ulid                                   string
	attempt, from, to                      int64
	digest                                 []byte
	data                                   string
}

func recordOf(row []driver.Value) (r record, err error) {
	integer := func(v driver.Value) int64 {
		n, ok := v.(int64)
		if !ok && v != nil {
			err = fmt.Errorf("%w: %T where an integer belongs", ErrDamaged, v)
		}
		return n
	}
	text := func(v driver.Value) string {
		s, ok := v.(string)
		if !ok && v != nil {
			err = fmt.Errorf("%w: %T where a text belongs", ErrDamaged, v)
		}
		return s
	}
	r = record{integer(row[0]), integer(row[1]), integer(row[2]), integer(row[3]), integer(row[4]), integer(row[5]), integer(row[6]),
		text(row[7]), integer(row[8]), integer(row[9]), integer(row[10]), nil, text(row[12])}
	switch v := row[11].(type) {
	case nil:
	case []byte:
		r.digest = v
		if v == nil {
			r.digest = []byte{} // the driver gives nil for an empty one
		}
	default:
		err = fmt.Errorf("%w: %T where bytes belong", ErrDamaged, v)
	}
	return r, err
}

func (r *record) namesJob() string {
	if Kind(r.kind) == KindEnqueued {
		return r.ulid
	}
	return ""
}

func (r *record) namesToken() string {
	if k := Kind(r.kind); k == KindClaimed || k == KindRefused {
		return r.ulid
	}
	return ""
}

// event makes e of r, all but Job and Token.
func (tx *Tx) event(ctx context.Context, r *record, e *Event) (err error) {
	*e = Event{Pos: r.pos, N: r.job, Seq: r.seq, At: FromMicros(r.at), Attempt: int(r.attempt), From: State(r.from), To: State(r.to)}
	if e.Actor, err = tx.NameOf(ctx, r.actor); err != nil {
		return err
	}
	if e.Worker, err = tx.WorkerOf(ctx, r.worker); err != nil {
		return err
	}
	process := e.Worker
	if e.Body, err = decode(Kind(r.kind), r.data, r.digest, &process); err != nil {
		return err
	}
	addUsual(e.Body, e.At)
	return nil
}

// nullable are the columns in which null stands for zero.
var nullable = [...]struct {
	i    int
	name string
}{{1, "job"}, {2, "seq"}, {6, "worker"}, {8, "attempt"}, {9, "from_state"}, {10, "to_state"}}

// odd names the first column of row that is not what Append would have written for e: it holds something where events
// of this kind have nothing, or the same in another form.
func (p *pages) odd(row []driver.Value, e *Event) string {
	for _, c := range nullable {
		if n, ok := row[c.i].(int64); ok && n == 0 {
			return c.name
		}
	}
	named := e.Kind() == KindEnqueued || e.Kind() == KindClaimed || e.Kind() == KindRefused
	stored, hasDigest := row[11].([]byte)
	if (row[7] != nil) != named {
		return "ulid"
	}
	for _, body := range [...]func(Body, time.Time) Body{withoutUsual, withUsual} {
		data, digest := appendStored(p.text[:0], body(e.Body, e.At))
		if hasDigest != (digest != nil) || !bytes.Equal(stored, digest) {
			return "digest"
		}
		text, hasData := row[12].(string)
		if hasData == (data != nil) && text == string(data) {
			return ""
		}
		if data != nil {
			p.text = data
		}
	}
	return "data"
}

// withUsual is withoutUsual as it once was: ledgers are older than what is usual for a claim and for attempts.
func withUsual(b Body, at time.Time) Body {
	if e, ok := b.(*Enqueued); ok && e.RunAt.Equal(at) {
		e := *e
		e.RunAt = time.Time{}
		return &e
	}
	return b
}

// besides is a snapshot on a connection of its own, beside that of a transaction.
type besides struct {
	*Tx
}

// beside opens one. It is not of the store's readers, or those who each have one and want another would wait for ever.
func (s *Store) beside(ctx context.Context) (*besides, error) {
	r, err := connect(ctx, readerURL(s.path))
	if err != nil {
		return nil, err
	}
	if _, err := r.exec(`BEGIN`); err != nil {
		_ = r.close()
		return nil, err
	}
	tx := newTx(s, r, false)
	tx.readOnly = true
	return &besides{tx}, nil
}

func (b *besides) end() { _ = b.session.close() }
