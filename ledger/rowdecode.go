package ledger

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"jobledger/ledger/internal/engine"
)

// eventWidth is how many columns eventColumns has.
const eventWidth = 13

// record is a row of the table events, column by column. A null is zero or empty.
type record struct {
	pos, job, seq, kind, at, actor, worker int64
	ulid                                   string
	attempt, from, to                      int64
	digest                                 []byte
	data                                   string

	given uint16 // a bit for each column that is not null
	wrong string // the name of a column whose value has another type than the column
}

// integer returns the field of an integer column; nil for the other columns.
func (r *record) integer(column int) *int64 {
	switch column {
	case 0:
		return &r.pos
	case 1:
		return &r.job
	case 2:
		return &r.seq
	case 3:
		return &r.kind
	case 4:
		return &r.at
	case 5:
		return &r.actor
	case 6:
		return &r.worker
	case 8:
		return &r.attempt
	case 9:
		return &r.from
	case 10:
		return &r.to
	}
	return nil
}

const (
	columnULID   = 7
	columnDigest = 11
	columnData   = 12
)

var eventNames = [eventWidth]string{"pos", "job", "seq", "kind", "at", "actor", "worker", "ulid", "attempt",
	"from_state", "to_state", "digest", "data"}

func (r *record) has(column int) bool { return r.given&(1<<column) != 0 }

// readRecord reads a row that has eventColumns.
func readRecord(row engine.Row) (r record) {
	for i := range eventWidth {
		kind := row.Type(i)
		if kind == engine.NullValue {
			continue
		}
		r.given |= 1 << i
		to := r.integer(i)
		switch {
		case to != nil && kind == engine.IntValue:
			*to = row.Int(i)
		case i == columnULID && kind == engine.TextValue:
			r.ulid = row.Text(i)
		case i == columnData && kind == engine.TextValue:
			r.data = row.Text(i)
		case i == columnDigest && kind == engine.BytesValue:
			r.digest = row.Bytes(i)
		default:
			r.wrong = eventNames[i]
		}
	}
	return r
}

// recordSource returns the rows of events in the order of pos.
type recordSource interface {
	// read appends the next rows, up to scanPage; fewer are the last ones.
	read(ctx context.Context, page []record) ([]record, error)
}

// pagedRows reads a page at a time through the driver.
type pagedRows struct {
	tx           *Tx
	after, until int64
}

const pageOfEvents = `SELECT ` + eventColumns + ` FROM events e
WHERE e.pos > ?1 AND e.pos <= ?2 ORDER BY e.pos LIMIT ?3`

func (p *pagedRows) read(ctx context.Context, page []record) ([]record, error) {
	err := p.tx.Each(ctx, func(row []driver.Value) bool {
		page = append(page, readRecord(engine.ValuesRow(row)))
		p.after = page[len(page)-1].pos
		return true
	}, pageOfEvents, p.after, p.until, scanPage)
	return page, err
}

// rawRows reads past the driver.
type rawRows struct{ engine.RawRows }

const allEvents = `SELECT ` + eventColumns + ` FROM events e WHERE e.pos > ?1 AND e.pos <= ?2 ORDER BY e.pos`

func (r *rawRows) read(ctx context.Context, page []record) ([]record, error) {
	if ctx.Err() != nil {
		return page, context.Cause(ctx)
	}
	for len(page) < scanPage {
		ok, err := r.Next()
		if !ok || err != nil {
			return page, err
		}
		page = append(page, readRecord(r))
	}
	return page, nil
}

// event decodes r into e, all but Job and Token.
func (tx *Tx) event(ctx context.Context, r *record, e *Event) (err error) {
	if r.wrong != "" {
		return fmt.Errorf("%w: the column %s is of another type", ErrDamaged, r.wrong)
	}
	*e = Event{Pos: r.pos, N: r.job, Seq: r.seq, At: FromMicros(r.at), Attempt: int(r.attempt),
		From: State(r.from), To: State(r.to)}
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
	addDefaults(e.Body, e.At)
	return nil
}

// nonCanonical names the first column of rec that is not what Append would have written for e: it holds a
// value where events of this kind have none, or the same value in another form.
func (r *pageReader) nonCanonical(rec *record, e *Event) string {
	for _, i := range [...]int{1, 2, 6, 8, 9, 10} { // in which null represents zero
		if rec.has(i) && *rec.integer(i) == 0 {
			return eventNames[i]
		}
	}
	k := e.Kind()
	if rec.has(columnULID) != (k == KindEnqueued || k.storesToken()) {
		return eventNames[columnULID]
	}
	for _, stored := range [...]func(Body, time.Time) Body{omitDefaults, omitRunAt} {
		data, digest := appendStored(r.text[:0], stored(e.Body, e.At))
		if rec.has(columnDigest) != (digest != nil) || !bytes.Equal(rec.digest, digest) {
			return eventNames[columnDigest]
		}
		if rec.has(columnData) == (data != nil) && rec.data == string(data) {
			return ""
		}
		if data != nil {
			r.text = data
		}
	}
	return eventNames[columnData]
}

// omitRunAt is what omitDefaults did in older ledgers, before claims and attempts had implicit defaults.
func omitRunAt(b Body, at time.Time) Body {
	if e, ok := b.(*Enqueued); ok && e.RunAt.Equal(at) {
		e := *e
		e.RunAt = time.Time{}
		return &e
	}
	return b
}
