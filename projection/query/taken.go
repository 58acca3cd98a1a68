package query

import (
	"cmp"
	"context"
	"database/sql/driver"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Taken asks which jobs were taken from a worker within a window, and which claim came next.
type Taken struct{ Span }

// TakenJob is a job that was taken from a worker.
type TakenJob struct {
	event.Event // by which it was taken back; its Worker is the one that had the job
	*event.Reclaimed
	Queue string
	Next  Attempt // may have begun after the window; the zero Attempt: no worker got it
}

// Waited is from when the job was taken until another worker got it; negative: none did.
func (t TakenJob) Waited() time.Duration {
	if t.Next.Pos == 0 {
		return -1
	}
	return t.Next.ClaimedAt.Sub(t.At)
}

// taken are the failures that are meant when a job was taken from a worker.
func (s Span) taken(ctx context.Context, tx *ledger.Tx) (found []Failure, err error) {
	q := Failures{Span: s, Outcomes: []event.Kind{event.KindReclaimed}}
	err = q.Each(ctx, tx, func(f Failure) { found = append(found, f) })
	return found, err
}

// Read returns the jobs, in the order in which they were taken. It reads what was taken back within the
// window, and of each of these jobs its next claim.
func (q Taken) Read(ctx context.Context, tx *ledger.Tx) (taken []TakenJob, err error) {
	found, err := q.taken(ctx, tx)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	latest, err := projection.AtPos(ctx, tx, 1<<63-1)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		t := TakenJob{Queue: f.Queue}
		if t.Event, _, err = tx.EventAt(ctx, f.Pos); err != nil {
			return nil, err
		}
		t.Reclaimed, _ = t.Body.(*event.Reclaimed)
		next, err := Attempts{Span: Span{To: latest}, Job: f.N, After: f.Pos, Limit: 1}.Read(ctx, tx)
		if err != nil {
			return nil, err
		}
		if len(next) > 0 {
			t.Next = next[0]
		}
		taken = append(taken, t)
	}
	slices.SortStableFunc(taken, func(a, b TakenJob) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(string(a.Job), string(b.Job)))
	})
	return taken, nil
}

// Loss is one period without heartbeats of a worker process that ended with jobs being taken back. A process
// that came back and was silent again has another one.
type Loss struct {
	Worker        event.Worker
	Jobs          []TakenJob // at least one
	LastHeartbeat time.Time  // zero: it sent none
	LeaseEnd      time.Time  // the first lease that ran out
}

// Losses are the losses of the processes from which jobs were taken, in the order in which they were
// detected.
func Losses(taken []TakenJob) (all []*Loss) {
	latest := make(map[event.Worker]*Loss)
	for _, t := range taken {
		l := latest[t.Worker]
		if l == nil || t.LastHeartbeat.After(l.Jobs[len(l.Jobs)-1].At) { // it was alive in between
			l = &Loss{Worker: t.Worker, LeaseEnd: t.LeaseUntil}
			latest[t.Worker], all = l, append(all, l)
		}
		l.Jobs = append(l.Jobs, t)
		if t.LastHeartbeat.After(l.LastHeartbeat) {
			l.LastHeartbeat = t.LastHeartbeat
		}
		if t.LeaseUntil.Before(l.LeaseEnd) {
			l.LeaseEnd = t.LeaseUntil
		}
	}
	return all
}

// Poison asks which jobs were taken from more than one worker process within a window.
type Poison struct{ Span }

// PoisonJob is a job that was taken from more than one worker process.
type PoisonJob struct {
	Job       event.JobID
	Taken     int64
	Processes int64    // from how many worker processes
	Workers   []string // their names, in the order in which they lost it
	Last      time.Time
	Queue     string
	State     event.State // now
}

const stateNow = `SELECT state FROM jobs WHERE n = ?`

// Read returns the jobs, those with the most processes first. It reads what was taken back within the window.
func (q Poison) Read(ctx context.Context, tx *ledger.Tx) (poison []PoisonJob, err error) {
	found, err := q.taken(ctx, tx)
	jobs := make(map[int64]*PoisonJob)
	seen := make(map[int64]map[string]bool)
	for _, f := range found {
		if jobs[f.N] == nil {
			jobs[f.N], seen[f.N] = &PoisonJob{Job: f.Job, Queue: f.Queue}, make(map[string]bool)
		}
		j := jobs[f.N]
		j.Taken, j.Last, j.Workers = j.Taken+1, f.At, append(j.Workers, f.Worker.Name)
		seen[f.N][f.Worker.Boot] = true
		j.Processes = int64(len(seen[f.N]))
	}
	maps.DeleteFunc(jobs, func(_ int64, j *PoisonJob) bool { return j.Processes < 2 })
	for n, j := range jobs {
		err := tx.Each(ctx, func(row []driver.Value) bool {
			state, _ := row[0].(int64)
			j.State = event.State(state)
			return true
		}, stateNow, n)
		if err != nil {
			return nil, err
		}
		poison = append(poison, *j)
	}
	slices.SortFunc(poison, func(a, b PoisonJob) int {
		return cmp.Or(-cmp.Compare(a.Processes, b.Processes), a.Last.Compare(b.Last),
			strings.Compare(string(a.Job), string(b.Job)))
	})
	return poison, err
}

// Backlog asks which jobs that were enqueued within a window had not ended some time after that.
type Backlog struct {
	Span
	Later time.Duration // how long after a job was enqueued; 0: an hour
	Now   time.Time     // a job that is not that old yet is left out
}

// LateJob is a job that had not ended some time after it was enqueued.
type LateJob struct {
	Job      event.JobID
	Queue    string
	Enqueued time.Time
	Then     event.State // that time after it was enqueued
	Now      event.State // 0: the job has left the ledger
}

var stateLater = event.SQL(`SELECT q.ulid, q.data ->> 'queue', q.at, j.state,
    (SELECT x.to_state FROM events x WHERE x.job = q.pos AND x.seq > 0 AND x.at <= q.at + ?
     ORDER BY x.seq DESC LIMIT 1)
FROM events q LEFT JOIN jobs j ON j.n = q.pos
WHERE q.kind = {enqueued} AND q.pos > ? AND q.pos <= ? AND q.at <= ?`)

// Read returns the jobs, by id. It reads the jobs that were enqueued within the window.
func (q Backlog) Read(ctx context.Context, tx *ledger.Tx) (late []LateJob, err error) {
	later := cmp.Or(q.Later, time.Hour)
	err = tx.Each(ctx, func(row []driver.Value) bool {
		number := func(i int) int64 { n, _ := row[i].(int64); return n }
		j := LateJob{event.JobID(ledger.Text(row[0])), ledger.Text(row[1]), event.FromMicros(number(2)),
			event.State(number(4)), event.State(number(3))}
		if !j.Then.Final() && (q.Queue == "" || q.Queue == j.Queue) {
			late = append(late, j)
		}
		return true
	}, stateLater, later.Microseconds(), q.From.Pos, q.To.Pos,
		event.Micros(q.Now.Add(-later)))
	slices.SortFunc(late, func(a, b LateJob) int { return strings.Compare(string(a.Job), string(b.Job)) })
	return late, err
}
