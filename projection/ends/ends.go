// Package ends knows which work goes on though its job has ended: the commands of claims that were cancelled,
// until it is recorded that they have stopped, or until the end of the lease. What must not run at the same
// time asks it, and never the state of a job alone: a retry, a job that waits for the end of another one, the
// next tick of a schedule, a queue with a bound, a unique key.
//
// For one job, [Open] finds it by the job's events. The tables ends and delayed only find those jobs, and
// which others wait for them.
//
// Held by TestSurvivedCommandHolds and TestSurvivedCommandStops of package commands, and by
// TestLimitCountsCancelledCommand and TestUniqueKeyOfCancelledCommand of the program. This package is not
// part of the Go API, and may change in any release.
package ends

import (
	"context"
	"database/sql"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Open returns until when the command of the last claim of j runs at the latest, if j has ended and it may
// still run at now; else the zero time.
func Open(ctx context.Context, tx *ledger.Tx, j projection.Job, now time.Time) (until time.Time, err error) {
	if j.N == 0 || j.State != event.CancelledState && j.State != event.FailedState {
		return until, nil
	}
	lost, _, err := projection.LastLostClaim(ctx, tx, j, projection.Now(now))
	return lost.Until, err
}

// kept is how long rows stay of what is over. The clock may be set back meanwhile.
const kept = 24 * time.Hour

// Begin notes that the live claim of j is cancelled by an event at that time.
func Begin(tx *ledger.Tx, j projection.Job, at time.Time) error {
	now := event.Micros(at.Add(-kept))
	for _, old := range []string{`DELETE FROM ends WHERE until <= ?`, `DELETE FROM delayed WHERE until <= ?`} {
		if _, err := tx.Exec(old, now); err != nil {
			return err
		}
	}
	return Extend(tx, j.N, j.Attempt, j.LeaseUntil)
}

// Extend notes that the command of a claim that was cancelled may run until then.
func Extend(tx *ledger.Tx, job int64, attempt int, until time.Time) error {
	_, err := tx.Exec(`INSERT INTO ends (job, attempt, until) VALUES (?, ?, ?)
ON CONFLICT (job) DO UPDATE SET attempt = excluded.attempt, until = excluded.until`,
		job, int64(attempt), event.Micros(until))
	return err
}

// Stopped notes that the command of a claim has ended.
func Stopped(tx *ledger.Tx, job int64, attempt int) error {
	_, err := tx.Exec(`DELETE FROM ends WHERE job = ? AND attempt = ?`, job, int64(attempt))
	return err
}

const countOpen = `SELECT count(*),
    coalesce(sum(CASE WHEN coalesce(j.more ->> 'group', '') = ? THEN 1 ELSE 0 END), 0)
FROM ends e JOIN jobs j ON j.n = e.job
WHERE e.until > ? AND j.queue = (SELECT n FROM names WHERE name = ?) AND coalesce(j.lease_expires_at, 0) = 0`

// Count returns how many commands of cancelled jobs of a queue may still run at now, and how many of them in
// a group.
func Count(ctx context.Context, tx *ledger.Tx, queue, group string, now time.Time) (all, ofGroup int64,
	err error) {
	err = table.ScanOne(ctx, tx, countOpen, []any{&all, &ofGroup}, group, event.Micros(now), queue)
	return all, ofGroup, err
}

const openOfKey = `SELECT j.id FROM ends e JOIN jobs j ON j.n = e.job
WHERE e.until > ? AND j.queue = (SELECT n FROM names WHERE name = ?) AND j.more ->> 'key' = ?
    AND j.more ->> 'unique_while' = ? ORDER BY e.until DESC`

// OfKey returns a job, other than but, that had this key until it was cancelled and whose command may still
// run at now, and until when at the latest. ok is false if there is none.
func OfKey(ctx context.Context, tx *ledger.Tx, queue, key string, but event.JobID, now time.Time) (
	j projection.Job, until time.Time, ok bool, err error) {
	ids, err := scanIDs(ctx, tx, openOfKey, event.Micros(now), queue, key, event.WhileUnfinished)
	if err != nil {
		return j, until, false, err
	}
	for _, id := range ids {
		if id == but {
			continue
		}
		if j, ok, err = projection.Get(ctx, tx, id); err != nil || !ok {
			return j, until, false, err
		}
		if until, err = Open(ctx, tx, j, now); err != nil || until.After(now) {
			return j, until, err == nil, err
		}
	}
	return j, until, false, nil
}

func scanIDs(ctx context.Context, tx *ledger.Tx, query string, args ...any) (ids []event.JobID, err error) {
	return table.Column[event.JobID](tx.QueryState(ctx, query, args...))
}

// Delay is a job that is not to begin before the command of another one has ended.
type Delay struct {
	Child, Parent int64
	Until         time.Time // by then that command has ended
	RunAt         time.Time // when the child was to run otherwise; zero: it still waits for others
}

// Add notes a delay. One of the same jobs is replaced.
func (d Delay) Add(tx *ledger.Tx) error {
	_, err := tx.Exec(`INSERT INTO delayed (child, parent, until, run_at) VALUES (?, ?, ?, ?)
ON CONFLICT (child, parent) DO UPDATE SET until = excluded.until, run_at = excluded.run_at`,
		d.Child, d.Parent, event.Micros(d.Until), table.Moment(d.RunAt))
	return err
}

// Queued notes when a job whose delays hold was to run otherwise.
func Queued(tx *ledger.Tx, child int64, runAt time.Time) error {
	_, err := tx.Exec(`UPDATE delayed SET run_at = ? WHERE child = ?`, event.Micros(runAt), child)
	return err
}

const anyDelay = `SELECT count(*) FROM (SELECT child FROM delayed LIMIT 1) AS d`

// AnyDelays reports whether there are any.
func AnyDelays(ctx context.Context, tx *ledger.Tx) (bool, error) {
	var n int64
	err := table.ScanOne(ctx, tx, anyDelay, []any{&n})
	return n > 0, err
}

const (
	delays   = `SELECT child, parent, until, run_at FROM delayed `
	delaysOf = delays + `WHERE child = ? AND until > ? ORDER BY parent`
	delaysBy = delays + `WHERE parent = ? ORDER BY child`
)

// DelaysOf returns what a job is still delayed by at now.
func DelaysOf(ctx context.Context, tx *ledger.Tx, child int64, now time.Time) ([]Delay, error) {
	return scanDelays(ctx, tx, delaysOf, child, event.Micros(now))
}

// DelaysBy returns the delays by a job, over or not.
func DelaysBy(ctx context.Context, tx *ledger.Tx, parent int64) ([]Delay, error) {
	return scanDelays(ctx, tx, delaysBy, parent)
}

// Lift removes the delays by a job whose command has ended, and returns them.
func Lift(ctx context.Context, tx *ledger.Tx, parent int64) ([]Delay, error) {
	found, err := DelaysBy(ctx, tx, parent)
	if err == nil && len(found) > 0 {
		_, err = tx.Exec(`DELETE FROM delayed WHERE parent = ?`, parent)
	}
	return found, err
}

func scanDelays(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Delay, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	var d Delay
	var until int64
	var runAt sql.NullInt64
	err = table.Each(rows, err, []any{&d.Child, &d.Parent, &until, &runAt}, func() error {
		d.Until, d.RunAt = event.FromMicros(until), event.FromMicros(runAt.Int64)
		found = append(found, d)
		return nil
	})
	return found, err
}

// Latest returns the last end of some delays; the zero time if there are none.
func Latest(list []Delay) (until time.Time) {
	for _, d := range list {
		if d.Until.After(until) {
			until = d.Until
		}
	}
	return until
}
