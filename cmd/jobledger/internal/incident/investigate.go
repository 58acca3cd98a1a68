package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// sameEntry is how long after an event another one of the same sort still joins its entry.
const sameEntry = time.Minute

// investigation gathers a report.
type investigation struct {
	*Report
	recent map[string]*Entry            // the latest of each key
	silent map[event.Worker]*LostWorker // the latest of each process
}

// Investigate gathers what happened within w, and verifies the events of w and the jobs that they concern. It
// costs these and the jobs that were open when w began, which the depth of the queues begins with. now ends
// the depth of a window that reaches into the future.
func Investigate(ctx context.Context, store *ledger.Store, w export.Window, now time.Time) (*Report, error) {
	end := w.To
	if now.Before(end) {
		end = now
	}
	in := investigation{
		Report: &Report{Ledger: store.LedgerPath(), Window: w},
		recent: make(map[string]*Entry), silent: make(map[event.Worker]*LostWorker),
	}
	err := export.EachEvent(ctx, store, w, nil, func(e event.Event, queue string) error {
		in.add(e, queue)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, e := range in.Timeline {
		e.Text = e.text(e.Count)
	}
	err = store.Read(ctx, func(tx *ledger.Tx) error { return in.ask(ctx, tx, end) })
	return in.Report, err
}

// ask asks what is known about the window as a whole.
func (in *investigation) ask(ctx context.Context, tx *ledger.Tx, end time.Time) (err error) {
	var s query.Span
	if s.From, err = projection.AtPos(ctx, tx, in.Window.After); err != nil {
		return err
	}
	if s.To, err = projection.AtPos(ctx, tx, in.Window.Until); err != nil {
		return err
	}
	if in.Depth, err = readDepth(ctx, tx, in.Window, end); err != nil {
		return err
	}
	failures, err := query.Failures{Span: s}.Read(ctx, tx)
	if err != nil {
		return err
	}
	in.Failures = failures.List
	queues, err := projection.QueuesAsOf(ctx, tx, s.From)
	if err != nil {
		return err
	}
	in.Paused = slices.DeleteFunc(queues, func(q projection.Queue) bool { return !q.Paused })
	silent := s // also without an event of theirs
	if silent.From, err = projection.AtTime(ctx, tx, in.Window.From); err != nil {
		return err
	}
	if silent.To, err = projection.AtTime(ctx, tx, end); err != nil {
		return err
	}
	lost, err := status.LostWorkers(ctx, tx, silent.From, silent.To)
	if err != nil {
		return err
	}
	in.Silent = slices.DeleteFunc(lost, func(w status.LostWorker) bool {
		return in.silent[w.Worker.Worker] != nil // it is among those that lost jobs
	})
	in.Verified, err = audit.VerifyWindow(ctx, tx, in.Window.After, in.Window.Until, nil)
	return err
}

func (in *investigation) add(e event.Event, queue string) {
	in.Events++
	in.Activity.Count(e.Kind(), 1)
	switch b := e.Body.(type) {
	case *event.Failed:
		in.failed(e, queue, b.ErrorCode)
		in.note(e, key(e, queue, b.ErrorCode), func(n int64) string {
			return fmt.Sprintf("%s in %s failed: %s", render.Count(n, "attempt"), quote(queue), quote(b.ErrorCode))
		}).Failures = true
	case *event.Reclaimed:
		in.Reclaims.add(Reclaim{e, queue, b})
		in.lost(e, b)
		in.failed(e, queue, b.Reason)
		in.note(e, key(e, e.Worker.Boot, b.Reason), func(n int64) string {
			return fmt.Sprintf("%s taken back from %s on %s by %s: %s", render.Count(n, "job"),
				quote(e.Worker.Name), quote(e.Worker.Host), quote(e.Actor), quote(b.Reason))
		})
	case *event.Refused:
		in.Refused.add(e)
		in.cameBack(e)
		in.note(e, key(e, e.Worker.Boot, b.Command), func(n int64) string {
			return fmt.Sprintf("%s (%s) of %s refused: %s", render.Count(n, "write"), quote(b.Command),
				quote(e.Actor), quote(b.Why))
		})
	case *event.Cancelled:
		in.operatorOnJobs(e, queue, "cancelled", b.Reason)
	case *event.Retried:
		in.operatorOnJobs(e, queue, "retried", b.Reason)
	case *event.Rescheduled:
		in.operatorOnJobs(e, queue, "rescheduled", b.Reason)
	case *event.Erased:
		in.operatorOnJobs(e, queue, "erased the payloads and results of", b.Reason)
	case *event.QueuePaused:
		in.operator(e, key(e, b.Queue), once("paused the queue %s", quote(b.Queue)), b.Reason)
	case *event.QueueResumed:
		in.operator(e, key(e, b.Queue), once("resumed the queue %s", quote(b.Queue)), b.Reason)
	case *event.ScheduleSet:
		in.operator(e, key(e, b.Name), once("set the schedule %s", quote(b.Name)), b.Reason)
	case *event.SchedulePaused:
		in.operator(e, key(e, b.Name), once("paused the schedule %s", quote(b.Name)), b.Reason)
	case *event.ScheduleResumed:
		in.operator(e, key(e, b.Name), once("resumed the schedule %s", quote(b.Name)), b.Reason)
	case *event.ScheduleRemoved:
		in.operator(e, key(e, b.Name), once("removed the schedule %s", quote(b.Name)), b.Reason)
	case *event.ScheduleSkipped:
		in.note(e, key(e, b.Name, b.Why), func(n int64) string {
			return fmt.Sprintf("schedule %s made no job: %s, %s", quote(b.Name), quote(b.Why),
				render.Count(n, "time"))
		})
	case *event.QueueLimited:
		in.operator(e, key(e, b.Queue), once("limited the queue %s: %s", quote(b.Queue), render.LimitText(b)),
			b.Reason)
	case *event.QueueDefaults:
		in.operator(e, key(e, b.Queue), once("set defaults of the queue %s: %s", quote(b.Queue),
			render.DefaultsText(b)), b.Reason)
	case *event.WorkerStarted:
		in.note(e, key(e, e.Worker.Boot), once("worker %s started: pid %d on %s, version %s, queues %s",
			quote(e.Worker.Name), e.Worker.PID, quote(e.Worker.Host), quote(render.OrNone(e.Worker.Version)),
			quote(strings.Join(b.Queues, ", "))))
	case *event.WorkerStopped:
		in.note(e, key(e, e.Worker.Boot), once("worker %s stopped: pid %d on %s",
			quote(e.Worker.Name), e.Worker.PID, quote(e.Worker.Host)))
	case *event.Rebuilt:
		in.operator(e, key(e), once("rebuilt the tables: %s changed, %d added, %d removed",
			render.Count(b.Changed, "row"), b.Missing, b.Extra), "")
	case *event.Restored:
		in.operator(e, key(e), once("restored the ledger from %s", quote(b.From)), "")
	case *event.Imported:
		in.operator(e, key(e), once("imported %s from %s", render.Count(b.Events, "event"), quote(b.From)), "")
	case *event.Sealing:
		in.operator(e, key(e), once("had the events sealed as %s", quote(b.Origin)), b.Reason)
	case *event.Archived:
		in.operator(e, key(e), once("archived the events %d to %d", b.Lo+1, b.Hi), b.Reason)
	case *event.Removed:
		if b.Erased != "" {
			in.operator(e, key(e), once("erased what was left of the archived job %s", b.Erased), b.Reason)
			return
		}
		in.operator(e, key(e), once("removed %s that are archived", render.Count(b.Jobs, "job")), b.Reason)
	case *event.ArchivePolicy:
		in.operator(e, key(e), once("set the archive policy: %s", render.PolicyText(b)), b.Reason)
	}
}

// failed notes an attempt after which its job was given up.
func (in *investigation) failed(e event.Event, queue, code string) {
	if e.To == event.FailedState {
		in.GivenUp.add(GivenUp{e, queue, code})
	}
}

// lost notes that a job was taken back from a worker process.
func (in *investigation) lost(e event.Event, b *event.Reclaimed) {
	w := in.silent[e.Worker]
	if w == nil || b.LastHeartbeat.After(w.latest) { // it was alive in between
		w = &LostWorker{Worker: e.Worker, LeaseEnd: b.LeaseUntil, Detected: e.At}
		in.silent[e.Worker] = w
		in.LostWorkers = append(in.LostWorkers, w)
	}
	w.Jobs++
	w.latest = e.At
	if b.LastHeartbeat.After(w.LastHeartbeat) {
		w.LastHeartbeat = b.LastHeartbeat
	}
	if b.LeaseUntil.Before(w.LeaseEnd) {
		w.LeaseEnd = b.LeaseUntil
	}
}

// cameBack notes a refused write of a worker process that had lost a job.
func (in *investigation) cameBack(e event.Event) {
	w := in.silent[e.Worker]
	if w == nil {
		return
	}
	if w.Refused++; w.Back.IsZero() {
		w.Back = e.At
	}
}

// operatorOnJobs notes an operator's command on jobs of one queue. done is its verb in the past tense.
func (in *investigation) operatorOnJobs(e event.Event, queue, done, reason string) {
	in.operator(e, key(e, e.Actor, reason, queue), func(n int64) string {
		return fmt.Sprintf("%s %s in %s", done, render.Count(n, "job"), quote(queue))
	}, reason)
}

// operator notes an operator's command.
func (in *investigation) operator(e event.Event, key string, done func(count int64) string, reason string) {
	entry := in.note(e, key, func(n int64) string {
		text := quote(e.Actor) + " " + done(n)
		if reason != "" {
			text += ", reason: " + quote(reason)
		}
		return text
	})
	entry.ByOperator = true
}

// note adds an entry to the timeline, or counts e in the entry of events with the same key shortly before.
func (in *investigation) note(e event.Event, key string, text func(count int64) string) *Entry {
	if same := in.recent[key]; same != nil && e.At.Sub(same.Last) <= sameEntry {
		same.Count++
		same.Last = e.At
		return same
	}
	if len(in.Timeline) == maxEntries {
		in.Omitted++
		return &Entry{}
	}
	next := &Entry{First: e.At, Last: e.At, Count: 1, text: text}
	in.Timeline = append(in.Timeline, next)
	in.recent[key] = next
	return next
}

// key identifies events that share an entry: those of one kind with the same parts.
func key(e event.Event, parts ...string) string {
	return strings.Join(append(parts, e.Kind().String()), "\x00")
}

// once returns the text of an entry that does not mention its count.
func once(format string, args ...any) func(count int64) string {
	return func(int64) string { return fmt.Sprintf(format, args...) }
}
