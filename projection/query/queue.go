package query

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// QueueMarks asks which events of a window may explain what the queue did then.
type QueueMarks struct{ Span }

// QueueMark is such an event.
type QueueMark struct {
	Kind   string // deploy, paused, resumed, lost
	At     time.Time
	Worker string // deploy, lost: its name
	Before string // deploy: the previous version
	After  string // and the one from then on
	By     string // paused, resumed: who did it
	Reason string // paused
}

// Read returns them in the order of time: new versions of the queue's workers, pauses, and workers that were
// lost. It reads the starts of workers and the pauses up to the end of the window.
func (q QueueMarks) Read(ctx context.Context, tx *ledger.Tx) (marks []QueueMark, err error) {
	if q.To.Pos == 0 {
		return nil, nil
	}
	versions := make(map[string]string) // of workers of the queue
	f := ledger.Filter{Kinds: []event.Kind{event.KindWorkerStarted, event.KindQueuePaused,
		event.KindQueueResumed}, Until: q.To.Pos}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		mark := QueueMark{At: e.At, By: e.Actor}
		switch b := e.Body.(type) {
		case *event.WorkerStarted:
			if !slices.Contains(b.Queues, q.Queue) {
				continue
			}
			before, known := versions[e.Worker.Name]
			versions[e.Worker.Name] = e.Worker.Version
			if !known || before == e.Worker.Version {
				continue
			}
			mark = QueueMark{Kind: "deploy", At: e.At, Worker: e.Worker.Name, Before: before, After: e.Worker.Version}
		case *event.QueuePaused:
			mark.Kind, mark.Reason = "paused", b.Reason
		case *event.QueueResumed:
			mark.Kind = "resumed"
		}
		if e.Pos > q.From.Pos && (e.Kind() == event.KindWorkerStarted || event.Said(e.Body, "queue") == q.Queue) {
			marks = append(marks, mark)
		}
	}
	lost, err := status.LostWorkers(ctx, tx, q.From, q.To)
	for _, w := range lost {
		if _, serves := versions[w.Name]; serves && !w.SeenAt.Before(q.From.At) {
			marks = append(marks, QueueMark{Kind: "lost", At: w.SeenAt, Worker: w.Name})
		}
	}
	slices.SortStableFunc(marks, func(a, b QueueMark) int { return a.At.Compare(b.At) })
	return marks, err
}

// Head asks which job of a queue is ready, of those with the highest priority the one that has been so for
// longest.
type Head struct {
	Queue string
	At    projection.Moment // see projection.Now
}

const headNow = `SELECT j.n FROM jobs j WHERE j.lane > '' AND j.queue = (SELECT n FROM names WHERE name = ?)
AND j.run_at <= ? ORDER BY j.priority DESC, j.run_at, j.n LIMIT 1`

// Read returns the job's number; 0: none is ready. Of a moment of the past it reads the jobs that were open.
func (q Head) Read(ctx context.Context, tx *ledger.Tx) (n int64, err error) {
	if q.At.IsNow() {
		err = tx.Each(ctx, func(row []driver.Value) bool {
			n, _ = row[0].(int64)
			return true
		}, headNow, q.Queue, event.Micros(q.At.At))
		return n, err
	}
	open, err := projection.OpenJobsAsOf(ctx, tx, q.At)
	var head projection.Job
	for _, j := range open {
		if j.Queue != q.Queue || j.State != event.Queued || j.RunAt.After(q.At.At) {
			continue
		}
		if head.N == 0 || cmp.Or(cmp.Compare(head.Priority, j.Priority), j.RunAt.Compare(head.RunAt),
			cmp.Compare(j.N, head.N)) < 0 {
			head = j
		}
	}
	return head.N, err
}
