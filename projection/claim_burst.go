package projection

import (
	"context"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// SoleLane is the one lane from which a claim can take jobs, as the cache of the writer knows it. A burst
// claims from it without a search.
type SoleLane struct {
	Queue, Text string // of the lane
	Priority    int
	RunAt       int64  // no job of the lane is before this place: run_at, in microseconds,
	ID          string // and id
	Covers      int64  // as far as the events up to this pos say

	cache  *claimCache
	cursor *laneCursor
}

// FindSoleLane returns the only lane that fits; nil if there may be several, if the queue has limits, groups
// or a pause, or if the cache does not know.
func FindSoleLane(tx *ledger.Tx, want Want) *SoleLane {
	c, ok := tx.Cache().Value().(*claimCache)
	if !ok || len(want.Queues) != 1 || len(want.Except) > 0 || time.Since(c.listed) > maxCacheAge {
		return nil
	}
	queue := want.Queues[0]
	gate := c.gates[queue]
	if gate == nil || gate.Active() || c.grouped[queue] {
		return nil
	}
	var only *laneCursor
	for _, l := range c.queues[queue] {
		if !l.fits(want) {
			continue
		}
		if only != nil {
			return nil
		}
		only = l
	}
	if only == nil || only.version != "" || len(only.requires) > 0 {
		return nil
	}
	return &SoleLane{Queue: queue, Text: only.lane, Priority: only.priority, RunAt: only.runAt, ID: only.id,
		Covers: tx.Cache().Covers(), cache: c, cursor: only}
}

// Took notes in the cache that these jobs were claimed from the lane, all that were due at now or as many as
// limit. others says that jobs of other queues were queued since Covers.
func (l *SoleLane) Took(jobs []Job, limit int, now time.Time, others bool) {
	c := l.cache
	for _, gate := range c.gates {
		gate.Forget()
	}
	if others {
		lanes, gate := c.queues[l.Queue], c.gates[l.Queue]
		listed := c.listed
		*c = *newClaimCache()
		c.queues[l.Queue], c.gates[l.Queue], c.grouped[l.Queue], c.listed = lanes, gate, false, listed
	}
	if len(jobs) > 0 {
		last := jobs[len(jobs)-1]
		l.cursor.moveTo(event.Micros(last.RunAt), string(last.ID))
		l.cursor.taken = true
	}
	if len(jobs) < limit {
		l.cursor.drain(now)
		c.speculation = speculation{}
		c.speculate([]*laneCursor{l.cursor}, limit, now)
		return
	}
	c.speculation = speculation{lane: l.cursor, busy: true, limit: limit, now: now, wall: time.Now()}
}

// MissedEvents says what a cache must learn of the events that it does not cover: those that queue a job, and
// those of the kinds that may concern all jobs, as a list in SQL; and how many events are too many.
func MissedEvents() (queued event.State, kinds string, most int64) {
	return event.Queued, kindsOfAllJobs(), maxMissedEvents
}

// QueuedColumns are the columns of jobs j that ScanQueued reads.
var QueuedColumns = queuedRow.list

// ScanQueued reads a queued job from QueuedColumns, and the columns after these into more.
func ScanQueued(ctx context.Context, tx *ledger.Tx, rows *ledger.Rows, j *Job, more ...any) error {
	return scanJob(ctx, tx, rows, &queuedRow, j, more...)
}

// Change is a column of the table jobs with its new value: int64, string, or nil for null.
type Change struct {
	Column string
	Value  any
}

// Changes returns what Put would write over old.
func Changes(ctx context.Context, tx *ledger.Tx, old, new Job) (list []Change, err error) {
	before, err := RowOf(ctx, tx, old)
	if err != nil {
		return nil, err
	}
	after, err := RowOf(ctx, tx, new)
	for i := range after {
		if before[i] != after[i] {
			list = append(list, Change{table.Columns[i], after[i]})
		}
	}
	return list, err
}

var byNumber = `SELECT ` + table.List + ` FROM jobs j WHERE j.n = ?`

// CheckRow returns ErrDamaged if the row of j is not as Put would have written it, unless it has changed
// since.
func CheckRow(ctx context.Context, tx *ledger.Tx, j Job) error {
	want, err := RowOf(ctx, tx, j)
	if err != nil {
		return err
	}
	var read [table.Width]any
	into := make([]any, table.Width)
	for i := range read {
		into[i] = &read[i]
	}
	if err := table.ScanOne(ctx, tx, byNumber, into, j.N); err != nil {
		return err
	}
	if seq, _ := read[2].(int64); seq > j.Seq {
		return nil
	}
	for i, value := range read {
		if !ledger.SameValue(value, want[i]) {
			return fmt.Errorf("%w: job %s: %s is %v instead of %v", ledger.ErrDamaged, j.ID, table.Columns[i],
				value, want[i])
		}
	}
	return nil
}
