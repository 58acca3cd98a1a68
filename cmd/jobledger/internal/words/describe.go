package words

import (
	"fmt"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// Describe says in one line what e records: who, how, until when, why. The time, the kind and the new state
// of e, and the detail of an error, are left out. Times are given in zone.
func Describe(e event.Event, zone *time.Location) string {
	d := description{event: e, zone: zone}
	switch b := e.Body.(type) {
	case *event.Enqueued:
		d.enqueued(b)
	case *event.Claimed:
		d.claimed(b)
	case *event.Heartbeat:
		d.heartbeat(b)
	case *event.Succeeded:
		d.succeeded(b)
	case *event.Failed:
		d.failed(b)
	case *event.Released:
		d.released(b)
	case *event.Reclaimed:
		d.reclaimed(b)
	case *event.Cancelled:
		d.cancelled(b)
	case *event.Retried:
		d.retried(b)
	case *event.Rescheduled:
		d.rescheduled(b)
	case *event.Refused:
		d.refused(b)
	case *event.Unblocked:
		d.unblocked(b)
	case *event.Stopped:
		d.stopped(b)
	case *event.Survived:
		d.survived(b)
	case *event.Edited:
		d.edited(b)
	case *event.Replaced:
		d.add("payload of %s by %s", Count(b.PayloadBytes, "byte"), e.Actor)
	case *event.TakenOver:
		d.takenOver(b)
	case *event.Erased:
		d.erased(b)
	case *event.QueuePaused:
		d.queue(b.Queue, b.Reason)
	case *event.QueueResumed:
		d.queue(b.Queue, b.Reason)
	case *event.QueueLimited:
		d.queue(b.Queue, b.Reason)
		d.add("%s", LimitText(b))
	case *event.QueueDefaults:
		d.queue(b.Queue, b.Reason)
		d.add("%s", DefaultsText(b))
	case *event.ScheduleSet, *event.SchedulePaused, *event.ScheduleResumed, *event.ScheduleRemoved,
		*event.ScheduleSkipped:
		d.schedule(b)
	case *event.WorkerStarted:
		d.workerStarted(b)
	case *event.WorkerStopped:
		d.workerStopped()
	case *event.Rebuilt:
		d.rebuilt(b)
	case *event.Restored:
		d.restored(b)
	case *event.Imported:
		d.imported(b)
	case *event.Sealing:
		d.sealing(b)
	case *event.Archived:
		d.archived(b)
	case *event.ArchiveDescribed:
		d.archiveDescribed(b)
	case *event.Removed:
		d.removed(b)
	case *event.ArchivePolicy:
		d.archivePolicy(b)
	}
	// An event of a claim is recorded by its worker, unless an operator presented the token.
	if e.Attempt > 0 && saidByOwner(e.Kind()) && e.Actor != "worker:"+e.Worker.Name {
		d.add("said by %s", e.Actor)
	}
	return strings.Join(d.phrases, "; ")
}

// saidByOwner reports whether events of this kind are recorded by the owner of a claim.
func saidByOwner(k event.Kind) bool {
	return k.IsSignOfLife() && k != event.KindRefused
}

func (d *description) enqueued(b *event.Enqueued) {
	d.add("in queue %s by %s", b.Queue, d.event.Actor)
	d.addIf(b.RunAt.After(d.event.At), "runs at %s", d.moment(b.RunAt))
	d.addIf(b.Priority != 0, "priority %d", b.Priority)
	d.addIf(b.Group != "", "group %q", b.Group)
	d.addIf(b.Key != "", "key %q", b.Key)
	d.addIf(b.UniqueWhile != "", "unique while %s", b.UniqueWhile)
	d.addIf(len(b.After) > 0, "after %s", strings.Join(b.After, ", "))
	d.addIf(len(b.Before) > 0, "before %s", strings.Join(b.Before, ", "))
	d.addIf(b.Hold, "held")
	d.addIf(b.Schedule != "", "by schedule %s", b.Schedule)
	for _, name := range SortedNames(b.Tags) {
		d.add("tag %s=%s", name, b.Tags[name])
	}
	d.addIf(b.Version != "", "only for version %s", b.Version)
	d.addIf(len(b.Requires) > 0, "only with %s", strings.Join(b.Requires, ", "))
	d.addIf(b.MaxRuntime > 0, "max runtime %s", Duration(b.MaxRuntime))
	d.add("up to %s", Count(int64(b.MaxAttempts), "attempt"))
	d.addIf(b.Backoff != event.Backoff{}, "backoff %s", BackoffText(b.Backoff))
	what := "payload"
	if b.Form == event.FormArgv {
		what = "command"
	}
	d.add("%s of %s", what, Count(b.PayloadBytes, "byte"))
}

func (d *description) claimed(b *event.Claimed) {
	d.add("attempt %d by %s (%s)", d.event.Attempt, d.event.Worker.Name, Process(d.event.Worker))
	d.add("lease until %s", d.moment(b.LeaseUntil))
	d.addIf(b.MaxRuntime > 0, "max runtime %s", Duration(b.MaxRuntime))
}

func (d *description) heartbeat(b *event.Heartbeat) {
	d.attempt()
	d.add("lease until %s", d.moment(b.LeaseUntil))
	if b.Progress != nil {
		d.add("%s", Percent(*b.Progress))
	}
	d.addIf(b.Note != "", "%s", b.Note)
	d.addIf(b.CannotEnd != "", "cannot be ended: %s", b.CannotEnd)
}

func (d *description) succeeded(b *event.Succeeded) {
	d.attempt()
	d.exit(b.ExitCode, "")
	d.addIf(b.ResultSHA256 != "", "result of %s", Count(b.ResultBytes, "byte"))
	d.addIf(b.AfterMaxRuntime, "after its max runtime")
	d.used(b.Cost)
}

func (d *description) failed(b *event.Failed) {
	d.attempt()
	d.addIf(b.ErrorCode != "", "%s", ErrorText(b.ErrorCode))
	d.exit(b.ExitCode, b.Signal)
	d.used(b.Cost)
	d.retry(b.RetryAt)
}

func (d *description) released(b *event.Released) {
	d.attempt()
	d.addIf(b.Snooze, "the job asked to be run later")
	d.reason(b.Reason)
	d.used(b.Cost)
	d.add("runs again at %s", d.moment(b.RunAt))
}

func (d *description) reclaimed(b *event.Reclaimed) {
	d.add("attempt %d taken from %s by %s", d.event.Attempt, d.event.Worker.Name, d.event.Actor)
	d.add("%s", map[string]string{event.LeaseExpired: "lease expired",
		event.MaxRuntime: "max runtime exceeded"}[b.Reason])
	d.add("lease ended at %s", d.moment(b.LeaseUntil))
	d.add("last heartbeat %s", d.moment(b.LastHeartbeat))
	d.addIf(b.StillRunning != "", "still running: %s", b.StillRunning)
	d.retry(b.RetryAt)
}

func (d *description) cancelled(b *event.Cancelled) {
	d.add("by %s", d.event.Actor)
	d.addIf(b.Because != "", "because of how %s ended", b.Because)
	d.reason(b.Reason)
	d.addIf(d.event.Attempt > 0, "attempt %d of %s was under way", d.event.Attempt, d.event.Worker.Name)
}

func (d *description) retried(b *event.Retried) {
	d.add("by %s", d.event.Actor)
	d.addIf(b.Because != "", "because %s runs once more", b.Because)
	d.addIf(b.Alone, "alone")
	d.addIf(b.KeyTaken, "its key is taken")
	d.addIf(b.MaxRuntime > 0, "an attempt may take %s", Briefly(b.MaxRuntime))
	d.reason(b.Reason)
	d.addIf(!b.RunAt.IsZero(), "waits until %s for its last command", d.moment(b.RunAt))
}

func (d *description) unblocked(b *event.Unblocked) {
	d.add("by %s", d.event.Actor)
	d.addIf(b.Because != "", "because of how %s ended", b.Because)
	d.addIf(b.Hold, "its hold is lifted")
	d.addIf(b.Blocked, "it waits for other jobs")
	d.reason(b.Reason)
}

func (d *description) stopped(b *event.Stopped) {
	w := d.event.Worker
	d.add("the command of attempt %d by %s (%s), which was %s", d.event.Attempt, w.Name, Process(w), b.Why)
	d.exit(b.ExitCode, b.Signal)
	d.used(b.Cost)
}

func (d *description) survived(b *event.Survived) {
	w := d.event.Worker
	d.add("the command of attempt %d by %s (%s)", d.event.Attempt, w.Name, Process(w))
	d.add("it cannot be ended: %s", b.CannotEnd)
	d.add("others wait for it until %s", d.moment(b.LeaseUntil))
}

func (d *description) takenOver(b *event.TakenOver) {
	w := d.event.Worker
	d.add("attempt %d of %s by another process (%s)", d.event.Attempt, w.Name, Process(w))
	d.add("lease until %s", d.moment(b.LeaseUntil))
}

func (d *description) rescheduled(b *event.Rescheduled) {
	d.add("by %s", d.event.Actor)
	d.add("runs at %s", d.moment(b.RunAt))
	d.add("priority %d", b.Priority)
	d.reason(b.Reason)
}

func (d *description) edited(b *event.Edited) {
	d.add("by %s", d.event.Actor)
	d.addIf(b.MaxAttempts > 0, "up to %s", Count(int64(b.MaxAttempts), "attempt"))
	d.addIf(b.MaxRuntime > 0, "max runtime %s", Duration(b.MaxRuntime))
	d.addIf(b.Backoff != event.Backoff{}, "backoff %s", BackoffText(b.Backoff))
	d.addIf(len(b.Requires) > 0, "only with %s", strings.Join(b.Requires, ", "))
	d.reason(b.Reason)
}

func (d *description) refused(b *event.Refused) {
	d.add("%s by %s", b.Command, d.event.Actor)
	d.addIf(d.event.Attempt > 0, "token of attempt %d by %s", d.event.Attempt, d.event.Worker.Name)
	d.addIf(d.event.Attempt == 0, "token %s", d.event.Token)
	d.add("%s", b.Why)
	d.addIf(b.OfferedSHA256 != "" || b.OfferedBytes > 0, "offered a result of %s, SHA-256 %s",
		Count(b.OfferedBytes, "byte"), OrNone(b.OfferedSHA256))
	d.add("nothing was changed")
}

func (d *description) erased(b *event.Erased) {
	d.add("by %s", d.event.Actor)
	d.add("%s of payload and results", Count(b.Bytes, "byte"))
	d.reason(b.Reason)
}

func (d *description) queue(queue, reason string) {
	d.add("queue %s by %s", queue, d.event.Actor)
	d.reason(reason)
}

func (d *description) workerStarted(b *event.WorkerStarted) {
	d.add("%s (%s)", d.event.Worker.Name, Process(d.event.Worker))
	d.addIf(len(b.Queues) > 0, "queues %s", strings.Join(b.Queues, ", "))
	d.addIf(len(b.Capabilities) > 0, "capabilities %s", strings.Join(b.Capabilities, ", "))
}

func (d *description) workerStopped() {
	d.add("%s (%s)", d.event.Worker.Name, Process(d.event.Worker))
}

func (d *description) rebuilt(b *event.Rebuilt) {
	d.add("by %s", d.event.Actor)
	d.add("%s, of whose rows %d differed, %d were missing, %d too many", Count(b.Jobs, "job"), b.Changed,
		b.Missing, b.Extra)
}

func (d *description) restored(b *event.Restored) {
	d.add("%s from %s by %s", Count(b.Events, "event"), b.From, d.event.Actor)
	if b.Lost != nil {
		d.addIf(*b.Lost > 0, "%s of the ledger before it not among them", Count(int64(*b.Lost), "event"))
	}
}

func (d *description) imported(b *event.Imported) {
	d.add("%s from %s by %s", Count(b.Events, "event"), b.From, d.event.Actor)
	d.addIf(!b.AsOf.IsZero(), "a copy as of %s", Time(b.AsOf.In(d.zone)))
	d.addIf(b.MissingBodies > 0, "%d of their payloads and results were missing", b.MissingBodies)
}

func (d *description) sealing(b *event.Sealing) {
	d.add("as %s by %s", b.Origin, d.event.Actor)
	d.addIf(b.Key != "", "checkpoints are signed with %s", b.Key)
	d.addIf(b.Reason != "", "%s", b.Reason)
}

func (d *description) archived(b *event.Archived) {
	d.add("the events %d to %d by %s", b.Lo+1, b.Hi, d.event.Actor)
	d.add("%s in %s", Count(b.Jobs, "job"), ByteSize(b.Bytes))
	d.addIf(b.Reason != "", "%s", b.Reason)
}

func (d *description) archiveDescribed(b *event.ArchiveDescribed) {
	d.add("the file up to the event %d was read again by %s", b.Hi, d.event.Actor)
	var jobs int64
	for _, l := range b.Left {
		jobs += l.Jobs()
	}
	d.addIf(jobs > 0, "how %s ended that had left", Count(jobs, "job"))
}

func (d *description) removed(b *event.Removed) {
	if b.Erased != "" {
		d.add("%s of payloads and results of the archived job %s were erased by %s", ByteSize(b.BodyBytes),
			b.Erased, d.event.Actor)
		d.addIf(b.Reason != "", "%s", b.Reason)
		return
	}
	d.add("%s with %s by %s", Count(b.Jobs, "job"), Count(b.Events, "archived event"), d.event.Actor)
	d.addIf(b.Bodies > 0, "%s of payloads and results", ByteSize(b.BodyBytes))
	d.addIf(b.Kept > 0, "%s stayed", Count(b.Kept, "payload or result"))
	d.addIf(b.Reason != "", "%s", b.Reason)
}

func (d *description) archivePolicy(b *event.ArchivePolicy) {
	d.add("%s by %s", PolicyText(b), d.event.Actor)
	d.addIf(b.Reason != "", "%s", b.Reason)
}

// description is what describe has to say about an event, phrase by phrase.
type description struct {
	event   event.Event
	zone    *time.Location
	phrases []string
}

func (d *description) add(format string, args ...any) {
	d.phrases = append(d.phrases, fmt.Sprintf(format, args...))
}

func (d *description) addIf(condition bool, format string, args ...any) {
	if condition {
		d.add(format, args...)
	}
}

func (d *description) attempt() { d.add("attempt %d by %s", d.event.Attempt, d.event.Worker.Name) }

// used says what the attempt used, where that is much.
func (d *description) used(c event.Cost) {
	d.addIf(c.CPU() >= time.Second || c.MaxRSS >= 100_000_000, "%s", Used(c))
}

func (d *description) reason(text string) { d.addIf(text != "", "%s", text) }

func (d *description) exit(code *int, signal string) {
	if code != nil {
		d.add("exit code %d", *code)
	}
	d.addIf(signal != "", "killed by signal %s", signal)
}

func (d *description) retry(at time.Time) {
	if at.IsZero() {
		d.add("not tried again")
		return
	}
	d.add("next try at %s", d.moment(at))
}

// moment is t as an event's text shows it.
func (d *description) moment(t time.Time) string { return moment(t, d.event.At, d.zone) }
