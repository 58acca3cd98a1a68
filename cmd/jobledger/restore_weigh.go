package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// migrate brings a ledger of an older version up to date, as any command does, so that it can be compared.
func (r *restoring) migrate(ctx context.Context) error {
	var facts ledger.FileFacts
	err := ledger.InspectFile(ctx, r.path, func(_ *ledger.Tx, f ledger.FileFacts) error {
		facts = f
		return nil
	})
	if err != nil || facts.Schema == facts.Newest {
		return nil // what is wrong with it, if anything, weigh finds out
	}
	service, err := r.open(ctx)
	if err != nil {
		return err
	}
	return service.Store.Close()
}

// looker is ledger.InspectFile, or LookAlone.
type looker func(context.Context, string, func(*ledger.Tx, ledger.FileFacts) error) error

// weigh refuses to replace a ledger that is in use, or that holds what the backup does not.
func (r *restoring) weigh(ctx context.Context, look looker) error {
	var busy []projection.Worker
	err := look(ctx, r.path, func(old *ledger.Tx, _ ledger.FileFacts) error {
		return r.copy.Store.Read(ctx, func(fresh *ledger.Tx) error {
			same, err := projection.Common(ctx, old, fresh)
			if err == nil {
				r.lost, err = projection.LostAfter(ctx, old, same)
			}
			if err == nil {
				busy, err = atWork(ctx, old, r.now())
			}
			return err
		})
	})
	switch {
	case errors.Is(err, ledger.ErrNotALedger), errors.Is(err, ledger.ErrNewerSchema), errors.Is(err, ledger.ErrNoLedger):
		return withHint(exitf(exitUsage, "%w", err), "what is there stays as it is; move it away, or give --db another place")
	case errors.Is(err, ledger.ErrBusy):
		return inUse(r.path)
	case ctx.Err() != nil:
		return err
	case err != nil:
		r.unreadable = err
	}
	if r.force {
		return nil
	}
	switch {
	case r.unreadable != nil:
		return withHint(exitf(exitConflict, "nobody can say what would be lost: %w", r.unreadable),
			"--force restores all the same; what is there stays beside the new ledger")
	case len(busy) > 0:
		return withHint(exitf(exitConflict, "%s seems to be at work: %s", count(int64(len(busy)), "worker"), r.seenAtWork(busy[0])),
			"stop it; if it is gone, or cannot come back, --force restores")
	case r.lost.Events > 0:
		return withHint(exitf(exitConflict, "%s", r.lostText(r.name)), "--force restores all the same; what is there stays beside the new ledger")
	}
	return nil
}

// atWork are the workers that seem to be alive. Those of 'jobledger work' have the ledger open, and that is seen
// otherwise; but a script has not, between two commands, and on some file systems nobody's locks are seen.
func atWork(ctx context.Context, tx *ledger.Tx, now time.Time) ([]projection.Worker, error) {
	workers, err := projection.Workers(ctx, tx, now, false)
	var busy []projection.Worker
	for _, w := range workers {
		if w.State == projection.Working || w.State == projection.Idle {
			busy = append(busy, w)
		}
	}
	return busy, err
}

func (r *restoring) seenAtWork(w projection.Worker) string {
	text := fmt.Sprintf("%s (%s) was seen %s", w.Name, process(w.Worker), age(w.SeenAt, r.now()))
	if len(w.Jobs) > 0 {
		text += fmt.Sprintf(" and holds %s until %s", count(int64(len(w.Jobs)), "job"), formatTime(r.local(w.Jobs[0].LeaseUntil)))
	}
	return text
}

// inUse refuses because the ledger is open, and says by whom, where the system tells.
func inUse(path string) error {
	var who []string
	for _, h := range ledger.LockHolders(path) {
		if h.PID != os.Getpid() {
			who = append(who, fmt.Sprintf("%s (pid %d)", cmp.Or(h.Program, "a process"), h.PID))
		}
	}
	by := "another process has"
	if len(who) > 0 {
		by = strings.Join(who, ", ") + verbFor(int64(len(who)), " has", " have")
	}
	return withHint(exitf(exitBusy, "%s %s open; nothing was changed", by, path), "stop the workers, and whatever else uses the ledger, and try again")
}

// lostText says what the ledger holds that the new one does not, and what that means for jobs.
func (r *restoring) lostText(where string) string {
	l := r.lost
	text := fmt.Sprintf("%s since %s %s not in %s", count(l.Events, "event"), formatTime(r.local(l.Since)), verbFor(l.Events, "is", "are"), where)
	var jobs []string
	if l.Enqueued > 0 {
		jobs = append(jobs, count(l.Enqueued, "job")+" enqueued since")
	}
	if l.Ended > 0 {
		jobs = append(jobs, fmt.Sprintf("the end of %s, which may run again", count(l.Ended, "job")))
	}
	if len(l.Erased) > 0 {
		jobs = append(jobs, fmt.Sprintf("that the payload of %s was erased, which comes back", count(int64(len(l.Erased)), "job")))
	}
	if len(jobs) > 0 {
		text += ", among them " + strings.Join(jobs, "; ")
	}
	return text
}

func (r *restoring) lostEvents() *int {
	if r.before == nil || r.unreadable != nil {
		return nil
	}
	n := int(r.lost.Events)
	return &n
}
