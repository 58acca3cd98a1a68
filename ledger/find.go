package ledger

import (
	"context"
	"time"

	"jobledger/ledger/event"
)

var (
	lastOf     = event.SQL(`SELECT coalesce(max(pos), 0) FROM events WHERE kind = ? AND kind > {rareAfter}`)
	enqueuedAs = event.SQL(`SELECT pos FROM events WHERE kind = {enqueued} AND ulid = ?`)
	firstFrom  = `SELECT pos, at FROM events WHERE pos >= ? ORDER BY pos LIMIT 1`
)

// LastOf returns the pos of the last event of a kind after [event.RareAfter]; 0 if there is none. It costs
// one search in the index rare_events.
func (tx *Tx) LastOf(ctx context.Context, k event.Kind) (pos int64, err error) {
	_, err = tx.one(ctx, []any{&pos}, lastOf, int64(k))
	return pos, err
}

// Number returns the number of the job with this id, from its enqueued event; 0 if there is none. It does not
// need the projection, but reads every enqueued event: for recovery, not for the hot path.
func (tx *Tx) Number(ctx context.Context, id event.JobID) (n int64, err error) {
	_, err = tx.one(ctx, []any{&n}, enqueuedAs, string(id))
	return n, err
}

// PosAt returns the last pos whose at is not after t; 0 if there is none. at never decreases along pos (I7),
// so this is a binary search. Events that have left the ledger do not count.
func (tx *Tx) PosAt(ctx context.Context, t time.Time) (int64, error) {
	if err := tx.flush(); err != nil {
		return 0, err
	}
	var low, pos, at int64
	high, err := tx.Tail(ctx)
	for err == nil && low < high {
		mid := low + (high-low+1)/2
		_, err = tx.first(ctx, []any{&pos, &at}, firstFrom, mid)
		if at <= event.Micros(t) {
			low = max(pos, mid)
		} else {
			high = mid - 1
		}
	}
	return low, err
}
