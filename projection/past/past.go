// Package past is about jobs that leave the ledger, because their events are in segment files: which may
// leave, and the keys of those that did, which stay theirs for ever.
//
//	ns, err := past.Candidates(ctx, tx, past.Rules{Hi: hi, EndedBefore: cutoff}, 0, 200)
//	ns, err = past.Removable(ctx, tx, rules, ns) // within the transaction that removes them
//
// The files: past.go says which jobs may leave, keys.go keeps the keys.
//
// Held by TestRemovalLosesNothing, TestKeeperCarriesOutThePolicy and TestRemovalGivesSpaceBack of package
// commands/archive, and by TestScripts/removal of the program. This package is not part of the Go API, and
// may change in any release.
package past

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
	"jobledger/projection/schedules"
)

// Rules say which jobs may leave the ledger: those that have ended, all of whose events are archived, and
// that nothing in the ledger needs any more.
type Rules struct {
	Hi           int64     // the last event that is archived
	LastAt       time.Time // of that event
	EndedBefore  time.Time // the jobs that ended before
	FailedBefore time.Time // of those that failed, the ones that ended before; zero: as EndedBefore
	KeepBodies   bool      // their payloads and results stay
}

func (r Rules) failedBefore() int64 {
	if r.FailedBefore.IsZero() {
		return event.Micros(r.EndedBefore)
	}
	return min(event.Micros(r.FailedBefore), event.Micros(r.EndedBefore))
}

// lastID returns the highest id that a job may have which leaves. An id says when it was made, so a caller
// that enqueues an old id again can be answered that its job may have left.
func (r Rules) lastID() string { return lastIDOf(r.LastAt) }

// MayHaveLeft reports whether a job with this id, which is not in the ledger, may have left it.
func MayHaveLeft(ctx context.Context, tx *ledger.Tx, id event.JobID) (bool, error) {
	h, err := projection.Horizon(ctx, tx)
	if err != nil || h == 0 {
		return false, err
	}
	at, err := projection.HorizonTime(ctx, tx)
	return string(id) <= lastIDOf(at), err
}

// Left returns those of ids that may be of jobs that have left the ledger, and are not there.
func Left(ctx context.Context, tx *ledger.Tx, ids []event.JobID) (gone []event.JobID, err error) {
	for _, id := range ids {
		left, err := MayHaveLeft(ctx, tx, id)
		there := false
		if err == nil && left {
			_, there, err = projection.Get(ctx, tx, id)
		}
		if err != nil {
			return nil, err
		}
		if left && !there {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

func lastIDOf(at time.Time) string {
	var id ulid.ULID
	for i := range id {
		id[i] = 0xff
	}
	if err := id.SetTime(uint64(max(0, at.UnixMilli()-1))); err != nil {
		return ""
	}
	return id.String()
}

var candidates = event.SQL(`SELECT n FROM jobs
WHERE n > ? AND n <= ? AND finished_at < ? AND (state <> {state:failed} OR finished_at < ?)
ORDER BY n LIMIT ?`)

// Candidates returns the numbers of up to so many jobs after the number after that seem to be free to leave.
func Candidates(ctx context.Context, tx *ledger.Tx, r Rules, after int64, limit int) (ns []int64, err error) {
	return table.Numbers(ctx, tx, candidates, after, r.Hi, event.Micros(r.EndedBefore), r.failedBefore(), limit)
}

var countCandidates = event.SQL(`SELECT count(*) FROM jobs
WHERE n <= ? AND finished_at < ? AND (state <> {state:failed} OR finished_at < ?)`)

// CountCandidates returns how many jobs Candidates would find, with those that ended after Hi.
func CountCandidates(ctx context.Context, tx *ledger.Tx, r Rules) (jobs int64, err error) {
	err = table.ScanOne(ctx, tx, countCandidates, []any{&jobs}, r.Hi, event.Micros(r.EndedBefore),
		r.failedBefore())
	return jobs, err
}

// removable compares the row of a job with its events, so that a wrong row costs no event. A job stays while
// another one waits for it, or it for another, and while a schedule goes by it.
var removable = event.SQL(`SELECT j.n FROM jobs j WHERE j.n IN (` + table.Placeholders(table.Chunk) + `)
AND j.state BETWEEN {state:succeeded} AND {state:cancelled} AND j.finished_at < ?
AND (j.state <> {state:failed} OR j.finished_at < ?) AND j.id <= ?
AND EXISTS (SELECT 1 FROM events e
    WHERE e.pos = j.n AND e.job = j.n AND e.kind = {enqueued} AND e.ulid = j.id)
AND EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND e.seq = j.seq AND e.to_state = j.state
    AND e.at = j.finished_at)
AND NOT EXISTS (SELECT 1 FROM events e WHERE e.job = j.n AND (e.seq > j.seq OR e.pos > ?))
AND NOT EXISTS (SELECT 1 FROM deps d WHERE d.parent = j.n)
AND NOT EXISTS (SELECT 1 FROM deps d WHERE d.child = j.n)
AND NOT EXISTS (SELECT 1 FROM resolving r WHERE r.parent = j.n)
AND NOT EXISTS (SELECT 1 FROM timetable t WHERE t.last_job = j.n)
ORDER BY j.n`)

// Removable returns which of the jobs ns may leave the ledger, in order. It judges by rows and events.
func Removable(ctx context.Context, tx *ledger.Tx, r Rules, ns []int64) (free []int64, err error) {
	for chunk := range table.Chunks(ns) {
		args := append(chunk, event.Micros(r.EndedBefore), r.failedBefore(), r.lastID(), r.Hi)
		some, err := table.Numbers(ctx, tx, removable, args...)
		if err != nil {
			return nil, err
		}
		free = append(free, some...)
	}
	return withoutLastTicks(ctx, tx, free)
}

// withoutLastTicks leaves out the jobs of the last tick of each schedule: the next one follows from it.
func withoutLastTicks(ctx context.Context, tx *ledger.Tx, ns []int64) ([]int64, error) {
	list, err := schedules.List(ctx, tx)
	if err != nil || len(list) == 0 || len(ns) == 0 {
		return ns, err
	}
	ticks := make(map[string]time.Time, len(list))
	for _, s := range list {
		ticks[s.Spec.Name] = s.LastTick
	}
	jobs, err := projection.GetMany(ctx, tx, ns)
	return slices.DeleteFunc(ns, func(n int64) bool {
		j := jobs[n]
		return j.Schedule != "" && !j.Tick.IsZero() && j.Tick.Equal(ticks[j.Schedule])
	}), err
}

var deleteRows = `DELETE FROM jobs WHERE n IN (` + table.Placeholders(table.Chunk) + `)`

// RemoveRows deletes the rows of jobs whose events have left. The database refuses it before.
func RemoveRows(tx *ledger.Tx, ns []int64) error {
	for chunk := range table.Chunks(ns) {
		if _, err := tx.Exec(deleteRows, chunk...); err != nil {
			return err
		}
	}
	return nil
}

// RemoveKeyframes deletes all keyframes, which count the jobs that the last event removed.
func RemoveKeyframes(tx *ledger.Tx) error {
	_, err := tx.Exec(`DELETE FROM keyframes WHERE pos <= ?`, int64(math.MaxInt64))
	return err
}
