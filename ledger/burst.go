package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/row"
)

// Burst is a write transaction that is sent to a database server as a whole, in one round trip, so that the
// write lock never waits for this process. The server gives pos and at. Nothing can be decided on the way: a
// query that finds something unusual must fail, with which everything is undone, and the function of Write
// runs instead.
type Burst struct {
	Within []WarmupQuery // under the write lock; one of them fails unless MayWrite is true
	After  []WarmupQuery // after the commit

	// Done reads the rows of Within and After, once these are durable. It returns the tail of the ledger before
	// the burst and after it. The value in tx.Cache() must cover the events up to there, or be invalidated.
	Done func(tx *Tx, answers []Answer) (base, tail int64, err error)
}

// MayWrite stands for the condition under which a Burst may write, in one of its queries.
const MayWrite = engine.MayWrite

// Answer is the rows of a query of a Burst.
type Answer = engine.Answer

// BurstPlan returns the burst that does the same as a function of Write would; nil: there is none. It must
// not read or write; tx has the cache of the Store and what is known of names.
type BurstPlan func(tx *Tx) *Burst

// CheckBursts has each burst compared with what Append and Put would have written, and bursts tried whatever
// the context of the caller. Tests set it.
var CheckBursts = false

// Bursts returns how many bursts were carried out, and how many failed.
func (s *Store) Bursts() (done, failed int64) { return s.bursts.done.Load(), s.bursts.undone.Load() }

// WriteBurst is Write, and tries plan first where that can be faster: on a server, where nothing else waits
// for the transaction, and where the caller waits for the outcome whatever happens, which a ctx says that
// cannot be cancelled. ErrUnknown also means that the connection was lost at any moment of a burst.
func (s *Store) WriteBurst(ctx context.Context, plan BurstPlan, fn func(*Tx) error) error {
	if _, ok := s.engine.(engine.Burster); !ok || ctx.Done() != nil && !CheckBursts {
		plan = nil
	}
	return s.writeOrBurst(ctx, plan, fn)
}

// bursts is how bursts have gone. Only the commit loop changes it.
type bursts struct {
	failed       int // in a row, as far as that matters
	pause        int // how many transactions do without
	done, undone atomic.Int64
}

// maxBurstPause bounds how many transactions are not tried as a burst after bursts that failed.
const maxBurstPause = 64

// burst tries the burst of r; done says that r needs nothing else, and err is its outcome.
func (s *Store) burst(r *request) (done bool, err error) {
	b := &s.bursts
	switch {
	case r.plan == nil || s.writer == nil || len(s.requests) > 0:
		return false, nil
	case b.pause > 0:
		b.pause--
		return false, nil
	}
	tx := ownTx(&transaction{store: s, session: s.writer, readOnly: true})
	s.cache.begin(tx)
	var planned *Burst
	s.group, s.at = []grouped{{request: r}}, 0
	planErr := s.call(tx.forFunction(&r.tx), func(tx *Tx) error {
		planned = r.plan(tx)
		return nil
	})
	if planErr != nil || planned == nil {
		return false, nil
	}
	failpoint.Hit("burst-planned")
	answers, err := s.engine.(engine.Burster).Burst(
		engine.Burst{Within: planned.Within, After: planned.After}, s.lockWait-time.Since(r.since))
	if errors.Is(err, engine.ErrRetry) && !errors.Is(err, ErrUnknown) {
		b.failed = min(b.failed+1, 6)
		b.undone.Add(1)
		b.pause = 1<<b.failed - 1
		return false, nil
	}
	if err != nil {
		s.cache.Invalidate()
		return true, err
	}
	b.failed = 0
	b.done.Add(1)
	s.writer.Lost = nil
	base, tail, err := planned.Done(tx, answers)
	if errors.Is(err, ErrIO) { // it is durable, and its caller does not know what it wrote
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err != nil {
		s.cache.Invalidate()
		b.pause = maxBurstPause
		return true, err
	}
	s.cache.afterBurst(base, tail)
	s.written.Store(tail)
	s.noDeps = 0
	return true, nil
}

// afterBurst notes that the value covers the events of a burst and those before it.
func (c *TxCache) afterBurst(base, tail int64) {
	if c.covers < base {
		c.contention = expectedContention
	} else if c.contention > 0 {
		c.contention--
	}
	c.loaded, c.covers = c.value != nil, tail
	if c.rareCovers == base {
		c.rareCovers = tail
	}
}

// Covers returns the pos of the last event that the value includes.
func (c *TxCache) Covers() int64 { return c.covers }

// RowsOf returns the rows of a as if its query was read in tx.
func (tx *Tx) RowsOf(ctx context.Context, a Answer) (*Rows, error) {
	rows, into, err := a.Read()
	return tx.session.RowsOf(ctx, rows, into, err)
}

// EventRow is what the table events has of an event besides its place, time and process, with the numbers
// and texts as they are stored; nil for null.
type EventRow struct{ Ulid, Attempt, From, To, Digest, Data any }

// EventRowOf returns the row of e as Append would write it.
func (tx *Tx) EventRowOf(ctx context.Context, e event.Event) (EventRow, error) {
	v, err := tx.rowOf(ctx, &e)
	return EventRow{v[7], v[8], v[9], v[10], v[11], v[12]}, err
}

const storedEvents = `SELECT ` + row.Columns + ` FROM events e WHERE e.pos > ? AND e.pos <= ? ORDER BY e.pos`

// CheckEvents returns ErrDamaged unless the events after base are these, as Append would have written them.
func (tx *Tx) CheckEvents(ctx context.Context, base int64, events []event.Event) error {
	rows, err := tx.ask(ctx, storedEvents, base, base+int64(len(events)))
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := range events {
		want, err := tx.rowOf(ctx, &events[i])
		if err != nil {
			return err
		}
		if !rows.Next() {
			return fmt.Errorf("%w: event %d was not appended", ErrDamaged, events[i].Pos)
		}
		for c, value := range rows.Values() {
			if !SameValue(value, want[c]) {
				return fmt.Errorf("%w: event %d: %s is %v instead of %v", ErrDamaged, events[i].Pos, row.Names[c],
					value, want[c])
			}
		}
	}
	return rows.Err()
}

// SameValue reports whether a column that was read has the value that was to be written.
func SameValue(read driver.Value, written any) bool {
	if n, ok := written.(int); ok {
		written = int64(n)
	}
	return reflect.DeepEqual(read, written)
}
