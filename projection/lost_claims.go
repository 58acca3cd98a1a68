package projection

import (
	"context"
	"database/sql"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// LostClaim is a claim that was cancelled or reclaimed while its command may still run: the end of the
// command has not been recorded, and the lease has not ended, at which its worker kills it at the latest.
type LostClaim struct {
	N       int64 // the job's number
	Job     event.JobID
	Queue   string
	Attempt int
	Worker  event.Worker

	ClaimedAt   time.Time
	HeartbeatAt time.Time // its last sign of life, at least ClaimedAt
	EndedAt     time.Time
	Ending      event.Kind // KindCancelled or KindReclaimed
	Until       time.Time  // the end of the lease, or what the last Survived says
	CannotEnd   string     // which process of it may not be signalled, and why; "": none is known of
}

// lostClaims reads the claims that ended in this way from one moment to another. The event before the end is
// the claim's last sign of life, with the end of its lease, which is implicit where it is one minute. The
// lease of a reclaimed claim has ended, unless the clock was set back: its own event says so, so that nothing
// is looked up for the many reclaims of a bad day. After the end, survived extends it.
var lostClaims = event.SQL(`SELECT e.job, q.ulid, q.data ->> 'queue', e.attempt, e.worker, e.at, e.kind, h.at,
    CAST(h.data ->> 'lease_until' AS BIGINT),
    (SELECT max(c.at) FROM events c WHERE c.job = e.job AND c.seq < e.seq AND c.kind = {claimed}),
    v.at, CAST(v.data ->> 'lease_until' AS BIGINT),
    coalesce(v.data ->> 'cannot_end', h.data ->> 'cannot_end', '')
FROM events e JOIN events q ON q.pos = e.job JOIN events h ON h.job = e.job AND h.seq = e.seq - 1
LEFT JOIN events v ON v.pos =
    (SELECT max(s.pos) FROM events s
     WHERE s.job = e.job AND s.seq IS NULL AND s.kind = {survived} AND s.attempt = e.attempt AND s.pos <= ?)
WHERE e.kind IN ({reclaimed}, {cancelled}) AND e.attempt IS NOT NULL AND e.at >= ? AND e.at <= ?
    AND e.pos <= ? AND (e.kind = {cancelled} OR CAST(e.data ->> 'lease_until' AS BIGINT) > ?)
    AND NOT EXISTS (SELECT 1 FROM events s
                    WHERE s.job = e.job AND s.seq IS NULL AND s.kind = {stopped} AND s.attempt = e.attempt
                        AND s.pos <= ?)`)

var (
	lostClaimsInOrder = lostClaims + ` ORDER BY e.at, e.pos`
	lostClaimOfJob    = lostClaims + ` AND e.job = ? AND e.attempt = ?`

	// Those that ended before the longest lease, and of which a process said since that they run on.
	survivingClaims = lostClaims + event.SQL(` AND e.job IN (SELECT s.job FROM events s
    WHERE s.kind = {survived} AND s.kind > {rareAfter} AND s.at >= ? AND s.pos <= ?) ORDER BY e.at, e.pos`)
)

const maxLease = 24 * time.Hour

// LostClaims returns the claims that are lost at m and whose commands may still run then, the oldest loss
// first.
func LostClaims(ctx context.Context, tx *ledger.Tx, m Moment) ([]LostClaim, error) {
	since, last := event.Micros(m.At.Add(-maxLease)), int64(math.MaxInt64)
	if m.next != 0 {
		last = m.next
	}
	old, err := scanLostClaims(ctx, tx, m.At, survivingClaims, m.Pos, 0, since-1, m.Pos, event.Micros(m.At),
		m.Pos, since, m.Pos)
	if err != nil {
		return nil, err
	}
	found, err := scanLostClaims(ctx, tx, m.At, lostClaimsInOrder, m.Pos, since, last, m.Pos, event.Micros(m.At),
		m.Pos)
	return append(old, found...), err
}

// LastLostClaim returns the last claim of job j, which is as it was at m, if it was lost and its command
// might still run then.
func LastLostClaim(ctx context.Context, tx *ledger.Tx, j Job, m Moment) (
	claim LostClaim, ok bool, err error) {
	const end = int64(math.MaxInt64)
	found, err := scanLostClaims(ctx, tx, m.At, lostClaimOfJob, m.Pos, 0, end, m.Pos, event.Micros(m.At), m.Pos,
		j.N, j.Attempt)
	if err != nil || len(found) == 0 {
		return claim, false, err
	}
	return found[0], true, nil
}

func scanLostClaims(ctx context.Context, tx *ledger.Tx, now time.Time, query string, args ...any) (
	found []LostClaim, err error) {
	rows, err := tx.Query(ctx, query, args...)
	var c LostClaim
	var worker, ended, kind, beat, claimed int64
	var until, survived, holds sql.NullInt64
	into := []any{&c.N, &c.Job, &c.Queue, &c.Attempt, &worker, &ended, &kind, &beat, &until, &claimed, &survived,
		&holds, &c.CannotEnd}
	err = table.Each(rows, err, into, func() (err error) {
		if !until.Valid {
			until.Int64 = beat + time.Minute.Microseconds()
		}
		until.Int64, beat = max(until.Int64, holds.Int64), max(beat, survived.Int64)
		c.EndedAt, c.Ending, c.Until = event.FromMicros(ended), event.Kind(kind), event.FromMicros(until.Int64)
		c.ClaimedAt, c.HeartbeatAt = event.FromMicros(claimed), event.FromMicros(beat)
		if !c.Until.After(now) {
			return nil
		}
		c.Worker, err = tx.WorkerOf(ctx, worker)
		found = append(found, c)
		return err
	})
	return found, err
}
