package ledger

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"jobledger/ledger/event"
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
func readRecord(row []driver.Value) (r record) {
	for i, value := range row {
		if value == nil {
			continue
		}
		r.given |= 1 << i
		right := false
		switch v := value.(type) {
		case int64:
			if to := r.integer(i); to != nil {
				*to, right = v, true
			}
		case string:
			switch i {
			case columnULID:
				r.ulid, right = v, true
			case columnData:
				r.data, right = v, true
			}
		case []byte:
			if right = i == columnDigest; right {
				r.digest = append([]byte{}, v...) // the driver returns nil for an empty one
			}
		}
		if !right {
			r.wrong = eventNames[i]
		}
	}
	return r
}

// pagedRows reads rows of events in the order of pos, a page at a time.
type pagedRows struct {
	tx           *Tx
	after, until int64
}

const pageOfEvents = `SELECT ` + eventColumns + ` FROM events e
WHERE e.pos > ?1 AND e.pos <= ?2 ORDER BY e.pos LIMIT ?3`

// read appends the next rows, up to scanPage; fewer are the last ones.
func (p *pagedRows) read(ctx context.Context, page []record) ([]record, error) {
	err := p.tx.Each(ctx, func(row []driver.Value) bool {
		page = append(page, readRecord(row))
		p.after = page[len(page)-1].pos
		return true
	}, pageOfEvents, p.after, p.until, scanPage)
	return page, err
}

// event decodes r into e, all but Job and Token.
func (tx *Tx) event(ctx context.Context, r *record, e *event.Event) (err error) {
	if r.wrong != "" {
		return fmt.Errorf("%w: the column %s is of another type", ErrDamaged, r.wrong)
	}
	*e = event.Event{Pos: r.pos, N: r.job, Seq: r.seq, At: event.FromMicros(r.at), Attempt: int(r.attempt),
		From: event.State(r.from), To: event.State(r.to)}
	if e.Actor, err = tx.NameOf(ctx, r.actor); err != nil {
		return err
	}
	if e.Worker, err = tx.WorkerOf(ctx, r.worker); err != nil {
		return err
	}
	process := e.Worker
	if e.Body, err = event.Decode(event.Kind(r.kind), r.data, r.digest, &process); err != nil {
		return err
	}
	event.AddDefaults(e.Body, e.At)
	return nil
}

// nonCanonical names the first column of rec that is not what Append would have written for e: it holds a
// value where events of this kind have none, or the same value in another form.
func (r *pageReader) nonCanonical(rec *record, e *event.Event) string {
	for _, i := range [...]int{1, 2, 6, 8, 9, 10} { // in which null represents zero
		if rec.has(i) && *rec.integer(i) == 0 {
			return eventNames[i]
		}
	}
	k := e.Kind()
	if rec.has(columnULID) != (k == event.KindEnqueued || k.StoresToken()) {
		return eventNames[columnULID]
	}
	for _, stored := range [...]func(event.Body, time.Time) event.Body{event.OmitDefaults, omitRunAt} {
		data, digest := event.AppendStored(r.text[:0], stored(e.Body, e.At))
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

// omitRunAt is what OmitDefaults did in older ledgers, before claims and attempts had implicit defaults.
func omitRunAt(b event.Body, at time.Time) event.Body {
	if e, ok := b.(*event.Enqueued); ok && e.RunAt.Equal(at) {
		e := *e
		e.RunAt = time.Time{}
		return &e
	}
	return b
}
