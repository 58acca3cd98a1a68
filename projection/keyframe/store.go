package keyframe

import (
	"context"
	"errors"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Every is how many events a sweeper leaves between two keyframes, at least. After a larger keyframe there
// are as many as it has bytes, so that keyframes take about a byte an event, and 16 with a million jobs
// open. There are at most atMost, since a question about a moment reads them all.
const (
	Every  = 4096
	atMost = 16 * Every
)

var putKeyframe = ledger.NewUpsert("keyframes", "pos",
	ledger.ColumnTypes{"ended": ledger.JSONColumn, "queued": ledger.BytesColumn, "held": ledger.BytesColumn},
	"pos", "ended", "queued", "held")

const (
	columns  = `SELECT k.pos, k.ended, k.queued, k.held FROM keyframes k `
	upTo     = columns + `WHERE k.pos <= ? ORDER BY k.pos DESC LIMIT 1`
	after    = columns + `WHERE k.pos > ? ORDER BY k.pos LIMIT 1`
	lastSize = `SELECT k.pos, length(k.queued) + length(k.held) FROM keyframes k WHERE k.pos <= ?
ORDER BY k.pos DESC LIMIT 1`
)

// Before returns the Frame of the last keyframe at or before pos; New if there is none.
func Before(ctx context.Context, tx *ledger.Tx, pos int64) (*Frame, error) {
	s, ok, err := one(ctx, tx, upTo, pos)
	if err != nil || !ok {
		return New(), err
	}
	return s.frame()
}

// Next returns the first keyframe after pos, as it is stored; ok is false if there is none.
func Next(ctx context.Context, tx *ledger.Tx, pos int64) (s Stored, ok bool, err error) {
	return one(ctx, tx, after, pos)
}

// At returns the Frame at pos. It costs the events since the keyframe before it.
func At(ctx context.Context, tx *ledger.Tx, pos int64) (*Frame, error) {
	f, err := Before(ctx, tx, pos)
	if err == nil && f.Pos < pos {
		err = f.Advance(ctx, tx, pos)
	}
	return f, err
}

// Near is At, or nil where there is no keyframe, where it is damaged, or where more events than jobs have
// come since the one before pos: the rows of the jobs show the same sooner.
func Near(ctx context.Context, tx *ledger.Tx, pos int64) (*Frame, error) {
	f, err := Before(ctx, tx, pos)
	if err == nil && f.Pos == 0 {
		_, some, err := Next(ctx, tx, 0)
		if err != nil || !some {
			return nil, err
		}
	}
	if err == nil && pos-f.Pos > max(2*Every, f.Jobs()) {
		return nil, nil
	}
	if err == nil {
		err = f.Advance(ctx, tx, pos)
	}
	if errors.Is(err, ledger.ErrDamaged) {
		return nil, nil
	}
	return f, err
}

func one(ctx context.Context, tx *ledger.Tx, query string, pos int64) (s Stored, ok bool, err error) {
	rows, err := tx.Query(ctx, query, pos)
	ok, err = table.First(rows, err, &s.Pos, &s.Ended, &s.Queued, &s.Held)
	return s, ok, err
}

// Remove deletes the keyframe at pos.
func Remove(tx *ledger.Tx, pos int64) error {
	_, err := tx.Exec(`DELETE FROM keyframes WHERE pos = ?`, pos)
	return err
}

// maxAtOnce bounds how many events one Extend reads. The next sweep goes on with the rest.
const maxAtOnce = 1 << 20

// Extend adds the keyframes that are due at the end of the ledger, with at least so many events between two,
// and returns how many. It reads in small steps, each in a snapshot of its own, and writes each keyframe in a
// short transaction. If none is due, it reads no event. If several processes do this at the same time, one of
// them continues.
func Extend(ctx context.Context, store *ledger.Store, every int64) (added int, err error) {
	var f *Frame
	removed, stale := int64(0), false // what had left the ledger when f began; f is of no use any more
	next := int64(0)                  // where the next keyframe is due
	for read := int64(0); read < maxAtOnce || f.Pos < next; read += every {
		due := false
		err := store.Read(ctx, func(tx *ledger.Tx) error {
			tail, err := tx.Tail(ctx)
			if err != nil {
				return err
			}
			if f == nil {
				var last, size int64
				if err := table.ScanOne(ctx, tx, lastSize, []any{&last, &size}, tail); err != nil {
					return err
				}
				left, err := horizon(ctx, tx, &removed)
				if err != nil {
					return err
				}
				if next = max(last+interval(every, size), left+1); next > tail {
					return nil
				}
				if f, err = Before(ctx, tx, tail); err != nil {
					return err
				}
			}
			if due = next <= tail; !due {
				return nil
			}
			return f.Advance(ctx, tx, min(f.Pos+every, tail)) // next is not a multiple of every after a removal
		})
		if err != nil || !due {
			return added, err
		}
		if f.Pos < next {
			continue
		}
		s := f.Stored()
		err = store.Write(ctx, func(tx *ledger.Tx) error {
			last := int64(0)
			if _, err := horizon(ctx, tx, &last); err != nil || last != removed {
				stale = true
				return err
			}
			newest, size := int64(0), int64(0)
			err := table.ScanOne(ctx, tx, lastSize, []any{&newest, &size}, int64(math.MaxInt64))
			if stale = newest >= s.Pos; err != nil || stale { // another sweeper is doing the same
				return err
			}
			return tx.Put(putKeyframe, s.Pos, s.Ended, s.Queued, s.Held)
		})
		if err != nil || stale {
			return added, err
		}
		next = f.Pos + interval(every, int64(len(s.Queued)+len(s.Held)))
		added++
	}
	return added, nil
}

// Fill adds all keyframes that are due. What is damaged ends them without an error, since they are a cache.
func Fill(ctx context.Context, store *ledger.Store) error {
	for {
		added, err := Extend(ctx, store, Every)
		if errors.Is(err, ledger.ErrDamaged) {
			return nil
		}
		if err != nil || added == 0 {
			return err
		}
	}
}

// horizon returns the event up to which others may have left the ledger, as the last removed event says, and
// the pos of that. Jobs that have left do not count in a keyframe, and there is none up to there.
func horizon(ctx context.Context, tx *ledger.Tx, last *int64) (hi int64, err error) {
	if *last, err = tx.LastOf(ctx, event.KindRemoved); err != nil || *last == 0 {
		return 0, err
	}
	err = table.ScanOne(ctx, tx, `SELECT coalesce(CAST(data ->> 'hi' AS bigint), 0) FROM events WHERE pos = ?`,
		[]any{&hi}, *last)
	return hi, err
}

// interval returns how many events there are after a keyframe of so many bytes, a multiple of every.
func interval(every, size int64) int64 {
	return max(1, min((size+every-1)/every, atMost/Every)) * every
}
