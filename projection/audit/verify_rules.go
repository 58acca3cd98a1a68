package audit

import (
	"cmp"
	"context"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/internal/table"
)

// rules checks what Evolve does not, because it does not change the state. j is the job before e.
func (v *verifier) rules(ctx context.Context, j *projection.Job, e *event.Event) error {
	if j == nil {
		return v.operators(ctx, e)
	}
	switch b := e.Body.(type) {
	case *event.Enqueued:
		v.notBefore(e, "run_at", b.RunAt)
		if carries := v.defaults[b.Queue].Commands; carries != (b.Form == event.FormArgv) {
			v.at(e, FindCommand, "form %q, where the jobs of the queue %s carry their commands: %t", b.Form, b.Queue,
				carries)
		}
	case *event.Claimed:
		v.claim(j, e, b)
	case *event.Heartbeat:
		endBy := j.EndBy
		if b.CannotEnd != "" { // what runs on holds its lease beyond that
			endBy = time.Time{}
		}
		v.lease(e, b.LeaseUntil, endBy)
	case *event.Succeeded:
		if b.AfterMaxRuntime && j.EndBy.IsZero() {
			v.at(e, FindTime, "succeeded after a max runtime that the claim did not have")
		}
	case *event.Failed:
		v.bounded(j, e, b.RetryAt)
		v.notBefore(e, "retry_at", b.RetryAt)
	case *event.Released:
		v.notBefore(e, "run_at", b.RunAt)
		if b.Snooze && j.Snoozes >= maxSnoozes {
			v.at(e, FindTooOften, "put off for the %dth time", j.Snoozes+1)
		}
	case *event.Reclaimed:
		v.reclaim(j, e, b)
	case *event.Rescheduled:
		if !b.RunAt.Equal(j.RunAt) {
			v.notBefore(e, "run_at", b.RunAt)
		} else if b.Priority == j.Priority {
			v.at(e, FindTime, "rescheduled to what it was")
		}
	case *event.Retried:
		if j.Erased {
			v.at(e, FindIllegal, "retried although its payload had been erased")
		}
		v.notBefore(e, "run_at", b.RunAt)
	case *event.Refused:
		return v.refused(ctx, j, e, b)
	case *event.TakenOver:
		v.lease(e, b.LeaseUntil, j.EndBy)
	case *event.Stopped:
		return v.afterClaim(ctx, e, b.Why)
	case *event.Survived:
		v.lease(e, b.LeaseUntil, time.Time{})
		return v.afterClaim(ctx, e, event.WhyCancelled)
	case *event.Erased:
		if j.Erased {
			v.at(e, FindIllegal, "erased once more")
		}
		return v.erasure(ctx, e, b)
	}
	return nil
}

var enqueuedUntil = event.SQL(`SELECT count(*) FROM events WHERE pos <= ? AND kind = {enqueued}`)

// operators checks events that concern no job.
func (v *verifier) operators(ctx context.Context, e *event.Event) error {
	switch b := e.Body.(type) {
	case *event.WorkerStarted, *event.WorkerStopped:
		v.workers(e)
	case *event.Rebuilt:
		before := int64(0)
		if v.Since > 0 {
			if err := table.ScanOne(ctx, v.tx, enqueuedUntil, []any{&before}, v.Since); err != nil {
				return err
			}
		}
		jobs := before + v.fold.Jobs
		if v.horizon == 0 {
			jobs -= v.removal.Jobs
		}
		if b.Jobs < jobs || b.Jobs > jobs && v.horizon == 0 { // what has left since counted too
			v.at(e, FindCount, "it says that %d of %d jobs were derived again", b.Jobs, jobs)
		}
	case *event.QueueDefaults:
		v.defaults[b.Queue] = defaults.Defaults{Spec: defaults.Spec{Commands: b.Commands}}
	case *event.Imported:
		v.imported(e, b)
	case *event.Archived:
		return v.archived(ctx, e, b)
	case *event.ArchiveDescribed:
		v.described(e, b)
	case *event.Removed:
		v.removed(e, b)
	case *event.Restored:
		if b.Events != 0 && b.Events != e.Pos-1 {
			v.at(e, FindCount, "its count of events that were restored is %d, but %d are before it", b.Events,
				e.Pos-1)
		}
	}
	return nil
}

// The rules of time, stated a second time on purpose: a command that broke its own rules would be noticed. A
// test holds them equal to those of package commands.
const (
	minLease     = time.Second
	maxLease     = 24 * time.Hour
	runtimeGrace = 15 * time.Second // by which a lease may outlast the max runtime
	maxSnoozes   = 99
)

// raised reports whether the clock may have run back: then at was raised to that of the event before, and the
// command followed its rules at an earlier time.
func (v *verifier) raised(e *event.Event) bool { return v.gap || e.At.Equal(v.last.At) }

// notBefore checks that a future time is not before e; a zero time passes.
func (v *verifier) notBefore(e *event.Event, field string, t time.Time) {
	if !t.IsZero() && t.Before(e.At) && !v.raised(e) {
		v.at(e, FindTime, "%s is %s, before the event itself", field, event.FormatTime(t))
	}
}

// lease checks the end of a lease that e gave or extended; the claim ends by endBy.
func (v *verifier) lease(e *event.Event, until, endBy time.Time) {
	least, most := e.At.Add(minLease), e.At.Add(maxLease)
	if end := endBy.Add(runtimeGrace); !endBy.IsZero() {
		least, most = earlier(least, end), earlier(most, end)
	}
	if until.After(most) || until.Before(least) && !v.raised(e) {
		v.at(e, FindTime, "the lease ends at %s, but must end between %s and %s",
			event.FormatTime(until), event.FormatTime(least), event.FormatTime(most))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (v *verifier) claim(j *projection.Job, e *event.Event, b *event.Claimed) {
	if j.RunAt.After(e.At) {
		v.at(e, FindEarly, "claimed before its run_at %s", event.FormatTime(j.RunAt))
	}
	if v.fold.Queues[j.Queue].Paused {
		v.at(e, FindEarly, "claimed while the queue %s was paused", j.Queue)
	}
	v.limited(j, e, b)
	if j.MaxRuntime > 0 && (b.MaxRuntime == 0 || b.MaxRuntime > j.MaxRuntime) {
		v.at(e, FindTime, "claimed for %s at most, and the job allows %s", b.MaxRuntime, j.MaxRuntime)
	}
	var endBy time.Time
	if b.MaxRuntime > 0 {
		endBy = e.At.Add(b.MaxRuntime)
	}
	v.lease(e, b.LeaseUntil, endBy)
	switch s, ok := v.started[e.Worker]; {
	case ok && !s.mayClaim(j, e.Worker.Version):
		v.at(e, FindUnfit, "the worker %s did not start for such a job", e.Worker.Name)
	case ok && e.Actor != "worker:"+e.Worker.Name && !byServer(e.Actor):
		v.at(e, FindUnfit, "the worker %s started, and claims as %q", e.Worker.Name, e.Actor)
	}
}

// byServer reports whether a server names the actor: it has checked who that is, and says so instead of the
// worker's own name.
func byServer(actor string) bool {
	return strings.HasPrefix(actor, "http:") || strings.HasPrefix(actor, "unix:")
}

func (v *verifier) reclaim(j *projection.Job, e *event.Event, b *event.Reclaimed) {
	if !b.LeaseUntil.Equal(j.LeaseUntil) || !b.LastHeartbeat.Equal(j.HeartbeatAt) || e.At.Before(j.LeaseUntil) {
		v.at(e, FindReclaim, "reclaimed at %s with lease end %s and last heartbeat %s, "+
			"but the lease ran to %s and the last heartbeat was %s",
			event.FormatTime(e.At), event.FormatTime(b.LeaseUntil), event.FormatTime(b.LastHeartbeat),
			event.FormatTime(j.LeaseUntil), event.FormatTime(j.HeartbeatAt))
	}
	if b.StillRunning != j.CannotEnd {
		v.at(e, FindReclaim, "reclaimed with %q as what may run on, but the last heartbeat said %q", b.StillRunning,
			j.CannotEnd)
	}
	over := !j.EndBy.IsZero() && !e.At.Before(j.EndBy)
	// Before the reason distinguished a dead worker from an endless job, max_runtime was said of both.
	alive := !j.EndBy.IsZero() && !j.HeartbeatAt.Before(j.EndBy)
	if b.Reason == event.MaxRuntime && !over || b.Reason == event.LeaseExpired && alive && !v.raised(e) {
		v.at(e, FindReclaim, "reclaimed for %s, but the claim was to end by %s", b.Reason,
			event.FormatTime(j.EndBy))
	}
	v.bounded(j, e, b.RetryAt)
	if b.RetryAt.IsZero() {
		if j.Failures+1 < j.MaxAttempts {
			v.at(e, FindTooOften, "failure %d of %d was not to be retried", j.Failures+1, j.MaxAttempts)
		}
		return
	}
	if j.Failures == 0 && b.Reason == event.LeaseExpired && b.RetryAt.Equal(e.At) {
		return // one lost worker is not the job's failure; older ledgers hold a wait here too
	}
	least, most := backoff(j.Backoff, j.Failures+1)
	if wait := b.RetryAt.Sub(e.At); wait > most || wait < least && !v.raised(e) {
		v.at(e, FindTime, "to be retried after %s; after failure %d that is from %s to %s", wait, j.Failures+1,
			least, most)
	}
}

// backoff returns the bounds of the wait after the nth failure: that of b, by default min(1 s · 2^(n−1), 1
// h), ± 20 %.
func backoff(b event.Backoff, n int) (least, most time.Duration) {
	wait := b.Wait(n)
	if b == (event.Backoff{}) {
		if wait = time.Hour; n < 13 {
			wait = min(wait, time.Second<<max(n-1, 0))
		}
	}
	return (wait * 8 / 10).Truncate(time.Microsecond), wait * 12 / 10
}

func (v *verifier) bounded(j *projection.Job, e *event.Event, retryAt time.Time) {
	if !retryAt.IsZero() && j.Failures+1 >= j.MaxAttempts {
		v.at(e, FindTooOften, "failure %d of %d was to be retried", j.Failures+1, j.MaxAttempts)
	}
}

// refused checks that the refused token belonged to an ended claim or to no claim, and that it is recorded
// once.
func (v *verifier) refused(ctx context.Context, j *projection.Job, e *event.Event, b *event.Refused) error {
	if j.State.Held() && e.Token == j.Token {
		v.at(e, FindRefused, "the token was the live one")
	}
	if b.OfferedBytes > 0 && (b.OfferedSHA256 == "") != j.Erased && !v.incomplete {
		v.at(e, FindRefused, "a result of size %d was offered, with the digest %q", b.OfferedBytes,
			b.OfferedSHA256)
	}
	claim, err := lastClaim(ctx, v.tx, e.N, e.Pos-1, claimIn(e))
	if err != nil {
		return err
	}
	kinds := []event.Kind{event.KindRefused}
	for past, err := range v.tx.Events(ctx, ledger.Filter{Job: e.N, Kinds: kinds, Until: e.Pos - 1}) {
		if err != nil {
			return err
		}
		if past.Token == e.Token && past.Body.(*event.Refused).Command == b.Command {
			v.at(e, FindRefused, "this token and command were refused before, by event %d", past.Pos)
		}
	}
	if claim.Attempt != e.Attempt || claim.Worker != e.Worker {
		v.at(e, FindRefused, "it names attempt %d by %q, and the token is that of attempt %d by %q",
			e.Attempt, e.Worker.Name, claim.Attempt, claim.Worker.Name)
	}
	return nil
}

// claimIn reports of an event whether it is that of the claim which e names, by its token. A survived is of
// the last claim, and has no token.
func claimIn(e *event.Event) func(event.Event) bool {
	return func(claim event.Event) bool { return claim.Token == e.Token || e.Kind() == event.KindSurvived }
}

// lastClaim returns the last event up to pos that says who holds a claim of job n for which is reports true:
// claimed, or taken_over; the zero Event if there is none.
func lastClaim(ctx context.Context, tx *ledger.Tx, n, pos int64, is func(event.Event) bool) (
	claim event.Event, err error) {
	f := ledger.Filter{Job: n, Kinds: []event.Kind{event.KindClaimed, event.KindTakenOver}, Until: pos}
	for past, err := range tx.Events(ctx, f) {
		if err != nil {
			return claim, err
		}
		if is(past) {
			claim = past
		}
	}
	return claim, nil
}

// afterClaim checks that the claim whose command ended, or survived it, was lost, for the reason that is
// given, and that its command had not stopped before.
func (v *verifier) afterClaim(ctx context.Context, e *event.Event, why string) error {
	claim, err := lastClaim(ctx, v.tx, e.N, e.Pos-1, claimIn(e))
	if err != nil {
		return err
	}
	if claim.Attempt != e.Attempt || claim.Worker != e.Worker {
		v.at(e, FindStopped, "it names attempt %d by %q, and the token is that of attempt %d by %q", e.Attempt,
			e.Worker.Name, claim.Attempt, claim.Worker.Name)
	}
	lost := ""
	kinds := []event.Kind{event.KindReclaimed, event.KindCancelled, event.KindStopped}
	for past, err := range v.tx.Events(ctx, ledger.Filter{Job: e.N, Kinds: kinds, Until: e.Pos - 1}) {
		switch {
		case err != nil:
			return err
		case past.Attempt != e.Attempt:
		case past.Kind() == event.KindStopped:
			v.at(e, FindStopped, "its command had stopped before, by event %d", past.Pos)
		default:
			lost = past.Kind().String()
		}
	}
	if lost != why {
		v.at(e, FindStopped, "its claim was %s, and its end is said to be %q", cmp.Or(lost, "not lost"), why)
	}
	return nil
}
