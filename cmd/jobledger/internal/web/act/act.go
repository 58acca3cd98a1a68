package act

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Acts carries out what operators ask for. It is safe for concurrent use.
type Acts struct {
	*api.API
	Service *commands.Service
}

// Request says what to do, and why.
type Request struct {
	Reason    string
	Seqs      []int64    // those of the job with which the caller saw it; nil: whatever it is
	RunAt     *time.Time // reschedule: nil: unchanged
	Priority  *int       // reschedule: nil: unchanged
	Now       bool       // retry: do not wait for a command that may still run
	Succeeded bool       // retry: a job that has succeeded too
}

// Verbs are what can be done to a job.
var Verbs = []string{"cancel", "retry", "reschedule", "unblock", "erase"}

// possible are the states in which a verb may be possible.
var possible = map[string]func(event.State) bool{
	"cancel":     func(s event.State) bool { return !s.Final() },
	"retry":      func(s event.State) bool { return s.Final() },
	"reschedule": func(s event.State) bool { return s == event.Queued || s == event.Blocked },
	"unblock":    func(s event.State) bool { return s == event.Blocked },
	"erase":      func(s event.State) bool { return s.Final() },
}

// Possible are the verbs that caller may ask of j as it is now.
func Possible(caller door.Caller, j projection.Job) (verbs []string) {
	for _, verb := range Verbs {
		if caller.Has(rightOf(verb)) && caller.Queue(j.Queue) && possible[verb](j.State) && !j.Erased {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// NeedsAllow reports whether j could be erased, if the server allowed that to the session of caller.
func NeedsAllow(caller door.Caller, j projection.Job) bool {
	return caller.Session && caller.Has(door.Operate) && !caller.Has(door.Erase) && possible["erase"](j.State) &&
		!j.Erased
}

// rightOf is the right that a verb needs.
func rightOf(verb string) door.Right {
	if verb == "erase" {
		return door.Erase
	}
	return door.Operate
}

// check returns why the caller of ctx may not do this to that queue.
func check(ctx context.Context, right door.Right, queue string) error {
	caller := door.CallerOf(ctx)
	switch {
	case !caller.Has(right):
		return door.Refusal(http.StatusForbidden, "forbidden", "this credential has no right to do this")
	case !caller.Queue(queue):
		return door.Refusal(http.StatusForbidden, "forbidden", "this credential is for other queues")
	}
	return nil
}

// command is the command of a verb.
func (r Request) command(verb string, delay time.Duration) (commands.Command, error) {
	switch verb {
	case "cancel":
		return commands.Cancel{Reason: r.Reason}, nil
	case "retry":
		return commands.Retry{Reason: r.Reason, NotSucceeded: !r.Succeeded, Now: r.Now, Delay: delay}, nil
	case "reschedule":
		if r.RunAt == nil && r.Priority == nil {
			return nil, door.BadInput("run_at", "give run_at or priority")
		}
		return commands.Reschedule{RunAt: r.RunAt, Priority: r.Priority, Reason: r.Reason}, nil
	case "unblock":
		return commands.Unblock{Reason: r.Reason}, nil
	case "erase":
		return commands.Erase{Reason: r.Reason}, nil
	}
	return nil, door.Refusal(http.StatusNotFound, "no_resource", "the acts are "+strings.Join(Verbs, ", "))
}

// Job carries out verb on the job with this id. With Seqs that the job does not have any more nothing is
// changed, and the error is moved_on. The rules of states are those of the verb, and hold in any case. If the
// job has moved on, or its state does not permit the verb, the job is returned unchanged.
func (a *Acts) Job(ctx context.Context, verb, id string, r Request) (projection.Job, error) {
	c, err := r.command(verb, 0)
	if err != nil {
		return projection.Job{}, err
	}
	if !api.IsJobID(id) {
		return projection.Job{}, door.BadInput("job", "this is not the id of a job")
	}
	if !door.CallerOf(ctx).Has(rightOf(verb)) { // before anything is said about the job
		return projection.Job{}, check(ctx, rightOf(verb), "")
	}
	j, err := a.Service.Get(ctx, event.JobID(id))
	if err != nil {
		return j, err
	}
	if !door.CallerOf(ctx).Queue(j.Queue) { // for such a caller there is no such job
		return projection.Job{}, fault.Exitf(fault.ExitNoJob, "there is no job %s", id)
	}
	var seq int64 // any
	switch {
	case slices.Contains(r.Seqs, j.Seq):
		seq = j.Seq
	case len(r.Seqs) > 0:
		seq = r.Seqs[0]
	case r.Seqs != nil:
		return j, door.Refusal(http.StatusPreconditionFailed, "moved_on", "the tag matches no state of this job")
	}
	after, err := a.Service.ApplyAt(ctx, door.CallerOf(ctx).Actor, j.ID, seq, c)
	if moved, ok := errors.AsType[*commands.MovedOnError](err); ok {
		return moved.Job, door.Refusal(http.StatusPreconditionFailed, "moved_on", moved.Error())
	}
	if errors.Is(err, commands.ErrConflict) {
		return j, err
	}
	if err == nil && verb == "erase" {
		err = a.removeLogs(after.ID)
	}
	return after, err
}

// removeLogs removes what the commands of an erased job wrote, from this host, as the verb erase does.
func (a *Acts) removeLogs(id event.JobID) error {
	folder, err := logs.Folder(a.Store.Path())
	if err == nil {
		err = attemptlog.Remove(folder, id)
	}
	if err != nil {
		return fmt.Errorf("the payload and results are erased, but the logs are not: %w", err)
	}
	return nil
}

// Queue pauses or resumes a queue; changed is false if nothing had to change.
func (a *Acts) Queue(ctx context.Context, verb, queue, reason string) (changed bool, err error) {
	if err := check(ctx, door.Operate, queue); err != nil {
		return false, err
	}
	actor := door.CallerOf(ctx).Actor
	switch verb {
	case "pause":
		return a.Service.Pause(ctx, actor, queue, reason)
	case "resume":
		return a.Service.Resume(ctx, actor, queue, reason)
	}
	return false, door.Refusal(http.StatusNotFound, "no_resource", "a queue can be paused and resumed")
}

// bulkVerbs are the verbs for many jobs.
var bulkVerbs = []string{"cancel", "retry", "reschedule"}

func isBulkVerb(verb string) bool { return slices.Contains(bulkVerbs, verb) }
