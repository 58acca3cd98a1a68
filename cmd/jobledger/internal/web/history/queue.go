package history

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// QueueMark is something that happened to a queue and that may explain what it did then.
type QueueMark struct {
	Kind string // deploy, paused, resumed, lost
	At   time.Time
	Text string
}

// QueueMarks are those of the queue of s within s, in the order of time: new versions of its workers, pauses,
// and workers that were lost.
func QueueMarks(ctx context.Context, tx *ledger.Tx, s Span) (marks []QueueMark, err error) {
	if s.To.Pos == 0 {
		return nil, nil
	}
	serves := make(map[string]bool) // workers of the queue
	versions := make(map[string]string)
	f := ledger.Filter{Kinds: []event.Kind{event.KindWorkerStarted, event.KindQueuePaused,
		event.KindQueueResumed}, Until: s.To.Pos}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		mark := QueueMark{At: e.At}
		switch b := e.Body.(type) {
		case *event.WorkerStarted:
			if !slices.Contains(b.Queues, s.Queue) {
				continue
			}
			name := e.Worker.Name
			before, known := versions[name]
			serves[name], versions[name] = true, e.Worker.Version
			if !known || before == e.Worker.Version {
				continue
			}
			mark.Kind, mark.Text = "deploy", fmt.Sprintf("%s: version %s after %s", name,
				render.OrNone(e.Worker.Version), render.OrNone(before))
		case *event.QueuePaused:
			if b.Queue != s.Queue {
				continue
			}
			mark.Kind, mark.Text = "paused", "paused by "+e.Actor+": "+render.ReasonOrNone(b.Reason)
		case *event.QueueResumed:
			if b.Queue != s.Queue {
				continue
			}
			mark.Kind, mark.Text = "resumed", "resumed by "+e.Actor
		}
		if e.Pos > s.From.Pos {
			marks = append(marks, mark)
		}
	}
	lost, err := status.LostWorkers(ctx, tx, s.From, s.To)
	for _, w := range lost {
		if serves[w.Name] && !w.SeenAt.Before(s.From.At) {
			marks = append(marks, QueueMark{"lost", w.SeenAt, w.Name + ": its last sign of life"})
		}
	}
	slices.SortStableFunc(marks, func(a, b QueueMark) int { return a.At.Compare(b.At) })
	return marks, err
}

const headNow = `SELECT j.n FROM jobs j WHERE j.lane > '' AND j.queue = (SELECT n FROM names WHERE name = ?)
AND j.run_at <= ? ORDER BY j.priority DESC, j.run_at, j.n LIMIT 1`

// Head returns the number of the job of a queue that is ready at now, of those with the highest priority the
// one that has been so for longest; 0: none is.
func Head(ctx context.Context, tx *ledger.Tx, queue string, now time.Time) (n int64, err error) {
	err = tx.Each(ctx, func(row []driver.Value) bool {
		n, _ = row[0].(int64)
		return true
	}, headNow, queue, event.Micros(now))
	return n, err
}

// HeadAsOf is Head at m.
func HeadAsOf(ctx context.Context, tx *ledger.Tx, queue string, m projection.Moment) (int64, error) {
	open, err := projection.OpenJobsAsOf(ctx, tx, m)
	var head projection.Job
	for _, j := range open {
		if j.Queue != queue || j.State != event.Queued || j.RunAt.After(m.At) {
			continue
		}
		first := head.N == 0 || j.Priority > head.Priority
		if !first && j.Priority == head.Priority {
			first = j.RunAt.Before(head.RunAt) || j.RunAt.Equal(head.RunAt) && j.N < head.N
		}
		if first {
			head = j
		}
	}
	return head.N, err
}
