package queues

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
)

// Row is how many jobs of a queue had not ended at a moment, or at the end of the step that begins then.
// Blocked jobs are not counted.
type Row struct {
	At    time.Time
	Queue string
	Ready int64 // queued, and their time has come
	Later int64 // queued for later
	Held  int64 // claimed or running
}

// Queued is how many of the jobs wait.
func (r Row) Queued() int64 { return r.Ready + r.Later }

// Peak is the most jobs of a queue within the window, and when there were first so many.
type Peak struct {
	Queue            string
	Queued, Held     int64
	QueuedAt, HeldAt time.Time // zero: there were none
}

// Depth counts the jobs that have not ended, transition by transition. Times are in microseconds.
type Depth struct {
	queue  string // "": all
	merged bool

	queues map[string]*queueDepth
	sorted []string           // their names; nil: not known
	later  map[int64]laterJob // by the job's number
	due    laterJobs
}

// queueDepth is how many jobs one queue has now.
type queueDepth struct {
	ready, later, held int64
	peak               Peak
}

// NewDepth returns a Depth of one queue, or of all; merged: they are counted as one, whose name is "".
func NewDepth(queue string, merged bool) *Depth {
	f := &Depth{queue: queue, merged: merged, queues: make(map[string]*queueDepth),
		later: make(map[int64]laterJob)}
	if merged {
		f.of("")
	}
	return f
}

// Begin counts the jobs that had not ended at m.
func (f *Depth) Begin(ctx context.Context, tx *ledger.Tx, m projection.Moment) error {
	if m.Pos == 0 {
		return nil
	}
	open, err := projection.OpenJobsAsOf(ctx, tx, m)
	for n, j := range open {
		switch {
		case f.queue != "" && j.Queue != f.queue:
		case j.State == event.Queued:
			f.put(f.of(j.Queue), n, event.Micros(j.RunAt), event.Micros(m.At))
		case j.State.Held():
			f.of(j.Queue).held++
		}
	}
	for _, q := range f.queues {
		q.mark(event.Micros(m.At))
	}
	return err
}

// queuesBefore are the queues of the jobs that were enqueued up to a pos.
const queuesBefore = `SELECT DISTINCT queue FROM jobs WHERE n <= ?`

// AddQueues adds the queues that had jobs at m, even if all of these have ended. A keyframe near m has
// them.
func (f *Depth) AddQueues(ctx context.Context, tx *ledger.Tx, m projection.Moment) error {
	if m.Pos == 0 || f.merged {
		return nil
	}
	frame, err := keyframe.Near(ctx, tx, m.Pos)
	if err != nil {
		return err
	}
	var names []string
	if frame != nil {
		names = slices.Collect(maps.Keys(frame.Ended()))
	} else {
		numbers, err := table.Numbers(ctx, tx, queuesBefore, m.Pos)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			name, err := tx.NameOf(ctx, n)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
	}
	for _, name := range names {
		if f.queue == "" || f.queue == name {
			f.of(name)
		}
	}
	return nil
}

// Follow goes along the transitions after the pos after, up to until. Before each one, fn is called with its
// time.
func (f *Depth) Follow(ctx context.Context, tx *ledger.Tx, after, until int64, fn func(at int64)) error {
	r := follow.Transitions{Pos: after}
	return r.Read(ctx, tx, until, func(t *follow.Transition) {
		if f.queue == "" || t.Queue == f.queue {
			fn(t.At)
			f.Add(t)
		}
	})
}

// Add counts t.
func (f *Depth) Add(t *follow.Transition) {
	f.Ripen(t.At)
	q := f.of(t.Queue)
	if t.From == event.Queued {
		f.remove(q, t.N)
	}
	if t.To == event.Queued {
		f.put(q, t.N, t.Ready, t.At)
	}
	q.held += follow.Change(t.From, t.To, event.State.Held)
	q.mark(t.At)
}

// of returns the queue called name.
func (f *Depth) of(name string) *queueDepth {
	if f.merged {
		name = ""
	}
	q := f.queues[name]
	if q == nil {
		q = new(queueDepth)
		f.queues[name], f.sorted = q, nil
	}
	return q
}

// mark notes a peak.
func (q *queueDepth) mark(at int64) {
	if n := q.ready + q.later; n > q.peak.Queued {
		q.peak.Queued, q.peak.QueuedAt = n, event.FromMicros(at)
	}
	if q.held > q.peak.Held {
		q.peak.Held, q.peak.HeldAt = q.held, event.FromMicros(at)
	}
}

// Peaks returns the peaks of the queues that had jobs, by name.
func (f *Depth) Peaks() (peaks []Peak) {
	for _, name := range f.Names() {
		if p := f.queues[name].peak; p.Queued+p.Held > 0 {
			p.Queue = name
			peaks = append(peaks, p)
		}
	}
	return peaks
}

// Names returns the names of the queues, in order.
func (f *Depth) Names() []string {
	if f.sorted == nil {
		f.sorted = slices.Sorted(maps.Keys(f.queues))
	}
	return f.sorted
}

// Rows returns how it is now, called at.
func (f *Depth) Rows(at time.Time) (rows []Row) {
	for _, name := range f.Names() {
		q := f.queues[name]
		rows = append(rows, Row{at, name, q.ready, q.later, q.held})
	}
	return rows
}

// put adds a queued job that is ready at a moment, as of now.
func (f *Depth) put(q *queueDepth, n, at, now int64) {
	if at <= now {
		q.ready++
		return
	}
	q.later++
	job := laterJob{at, n, q}
	f.later[n] = job
	heap.Push(&f.due, job)
}

// remove removes a queued job.
func (f *Depth) remove(q *queueDepth, n int64) {
	if _, isLater := f.later[n]; isLater {
		q.later--
		delete(f.later, n)
		return
	}
	q.ready--
}

// Ripen makes ready what is so by now.
func (f *Depth) Ripen(now int64) {
	for len(f.due) > 0 && f.due[0].at <= now {
		job, _ := heap.Pop(&f.due).(laterJob)
		if f.later[job.n] == job { // it has not left since
			delete(f.later, job.n)
			job.queue.later--
			job.queue.ready++
		}
	}
}

// laterJobs is a heap of jobs by when they are ready.
type laterJobs []laterJob

type laterJob struct {
	at, n int64
	queue *queueDepth
}

func (h laterJobs) Len() int           { return len(h) }
func (h laterJobs) Less(i, j int) bool { return cmp.Less(h[i].at, h[j].at) }
func (h laterJobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laterJobs) Push(x any)        { *h = append(*h, x.(laterJob)) }
func (h *laterJobs) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
