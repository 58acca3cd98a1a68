// Package row is the table events, row by row: its columns, how an event becomes a row, and how a row becomes
// an event. It asks the dictionary for names and decides nothing else. The ledger writes rows with Tx.Append.
//
//	values := row.Of(&e, actor, worker)
//	...
//	r := row.Read(values)
//	err := r.Decode(ctx, tx, &e)
//
// Files in reading order: row.go (the columns, and reading them), claims.go (what rows leave out), write.go.
//
// Held by TestStoredEventsRoundTrip, TestStoredEventsOmitDefaults and TestEventsDamageIsNamed of package
// ledger.
package row

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"jobledger/ledger/event"
)

// width is how many columns the table has.
const width = 13

// Row is a row of the table events, column by column. A null is zero or empty.
type Row struct {
	Pos                               int64
	job, seq, kind, at, actor, worker int64
	ULID                              string // of a job in its enqueued event, else a token
	attempt, from, to                 int64
	digest                            []byte
	data                              string

	given uint16 // a bit for each column that is not null
	wrong string // the name of a column whose value has another type than the column
}

// integer returns the field of an integer column; nil for the other columns.
func (r *Row) integer(column int) *int64 {
	switch column {
	case 0:
		return &r.Pos
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

// Names are the columns in order.
var Names = [width]string{"pos", "job", "seq", "kind", "at", "actor", "worker", "ulid", "attempt",
	"from_state", "to_state", "digest", "data"}

// Columns is the select list of all columns in a query on events e.
const Columns = `e.pos, e.job, e.seq, e.kind, e.at, e.actor, e.worker, e.ulid, e.attempt, ` +
	`e.from_state, e.to_state, e.digest, e.data`

func (r *Row) has(column int) bool { return r.given&(1<<column) != 0 }

// Read reads the values of a row that has Columns.
func Read(values []driver.Value) (r Row) {
	for i, value := range values {
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
				r.ULID, right = v, true
			case columnData:
				r.data, right = v, true
			}
		case []byte:
			if right = i == columnDigest; right {
				r.digest = append([]byte{}, v...) // the driver returns nil for an empty one
			}
		}
		if !right {
			r.wrong = Names[i]
		}
	}
	return r
}

// Dictionary has the names and workers that rows refer to by number.
type Dictionary interface {
	NameOf(ctx context.Context, n int64) (string, error)
	WorkerOf(ctx context.Context, n int64) (event.Worker, error)
}

// Decode decodes r into e, all but Job and Token. Errors: event.ErrDamaged, those of the dictionary.
func (r *Row) Decode(ctx context.Context, names Dictionary, e *event.Event) (err error) {
	if r.wrong != "" {
		return fmt.Errorf("%w: the column %s is of another type", event.ErrDamaged, r.wrong)
	}
	*e = event.Event{Pos: r.Pos, N: r.job, Seq: r.seq, At: event.FromMicros(r.at), Attempt: int(r.attempt),
		From: event.State(r.from), To: event.State(r.to)}
	if e.Actor, err = names.NameOf(ctx, r.actor); err != nil {
		return err
	}
	if e.Worker, err = names.WorkerOf(ctx, r.worker); err != nil {
		return err
	}
	process := e.Worker
	if e.Body, err = event.Decode(event.Kind(r.kind), r.data, r.digest, &process); err != nil {
		return err
	}
	event.AddDefaults(e.Body, e.At)
	return nil
}

// NonCanonical names the first column of r that is not what Append would have written for e: it holds a
// value where events of this kind have none, or the same value in another form. It uses the memory of text
// and returns it for the next row.
func (r *Row) NonCanonical(e *event.Event, text []byte) (column string, _ []byte) {
	for _, i := range [...]int{1, 2, 6, 8, 9, 10} { // in which null represents zero
		if r.has(i) && *r.integer(i) == 0 {
			return Names[i], text
		}
	}
	k := e.Kind()
	if r.has(columnULID) != (k == event.KindEnqueued || k.StoresToken()) {
		return Names[columnULID], text
	}
	for _, stored := range [...]func(event.Body, time.Time) event.Body{event.OmitDefaults, omitRunAt} {
		data, digest := event.AppendStored(text[:0], stored(e.Body, e.At))
		if r.has(columnDigest) != (digest != nil) || !bytes.Equal(r.digest, digest) {
			return Names[columnDigest], text
		}
		if r.has(columnData) == (data != nil) && r.data == string(data) {
			return "", text
		}
		if data != nil {
			text = data
		}
	}
	return Names[columnData], text
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
