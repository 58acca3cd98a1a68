package find

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/inbox"
)

// candidates is how many jobs an error lists where several are meant.
const candidates = 5

// leastSuffix is how many characters the end of an id must have: fewer name too many jobs.
const leastSuffix = 4

// Find returns the job that r names. If there is none, the error wraps [commands.ErrNoJob]; if there are
// several, it lists some.
func (r Ref) Find(ctx context.Context, tx *ledger.Tx) (projection.Job, error) {
	switch {
	case r.Last:
		return r.findLast(ctx, tx)
	case r.Key != "":
		return r.findByKey(ctx, tx)
	case r.NO > 0:
		return r.findByNumber(ctx, tx)
	}
	for _, dots := range []string{"…", "..."} {
		if suffix, ok := strings.CutPrefix(r.ID, dots); ok {
			return r.findBySuffix(ctx, tx, strings.ToUpper(suffix))
		}
	}
	return r.findByPrefix(ctx, tx, strings.ToUpper(r.ID))
}

func (r Ref) findByPrefix(ctx context.Context, tx *ledger.Tx, prefix string) (projection.Job, error) {
	if len(prefix) > ulid.EncodedSize || strings.Trim(prefix, ulid.Encoding) != "" || prefix == "" {
		return projection.Job{}, usagef(Forms,
			"%q is not a job id; an id is 26 characters, or the beginning of one", r.ID)
	}
	found, err := projection.Find(ctx, tx, prefix, candidates+1)
	return r.only(ctx, tx, found, err, "is the beginning of several ids", "give more of it, or its end as in …"+
		suffixOf(found))
}

func (r Ref) findBySuffix(ctx context.Context, tx *ledger.Tx, suffix string) (projection.Job, error) {
	if len(suffix) > ulid.EncodedSize || strings.Trim(suffix, ulid.Encoding) != "" || len(suffix) < leastSuffix {
		return projection.Job{}, usagef("",
			"%q is not the end of a job id; give at least its last %d characters", r.ID, leastSuffix)
	}
	found, err := projection.FindBySuffix(ctx, tx, suffix, candidates+1)
	return r.only(ctx, tx, found, err, "is the end of several ids", "give more of it")
}

func (r Ref) findByKey(ctx context.Context, tx *ledger.Tx) (projection.Job, error) {
	if r.Queue == "" {
		found, err := projection.FindByKey(ctx, tx, r.Key, candidates+1)
		return r.only(ctx, tx, found, err, "is a key in several queues", "say which with --queue (-q)")
	}
	j, ok, err := projection.GetByKey(ctx, tx, r.Queue, r.Key)
	if err == nil && !ok {
		err = r.missing(ctx, tx)
	}
	return j, err
}

func (r Ref) findLast(ctx context.Context, tx *ledger.Tx) (projection.Job, error) {
	if r.Queue == "" {
		found, err := projection.List(ctx, tx, projection.Filter{Until: r.until, Limit: 1})
		return r.only(ctx, tx, found, err, "", "")
	}
	j, ok, err := projection.Newest(ctx, tx, r.Queue, r.until)
	if err == nil && !ok {
		err = r.missing(ctx, tx)
	}
	return j, err
}

// only returns the job found if it is the only one.
func (r Ref) only(ctx context.Context, tx *ledger.Tx, found []projection.Job, err error,
	several, hint string) (projection.Job, error) {
	switch {
	case err != nil:
		return projection.Job{}, err
	case len(found) == 0 && len(r.ID) == ulid.EncodedSize:
		return projection.Job{}, inbox.Missing(ctx, tx, event.JobID(r.ID), commands.ErrNoJob)
	case len(found) == 0:
		return projection.Job{}, fmt.Errorf("%w: %s", commands.ErrNoJob, r)
	case len(found) == 1:
		return found[0], nil
	}
	var list []string
	for _, j := range found[:min(len(found), candidates)] {
		list = append(list, fmt.Sprintf("%s (%s in %s)", j.ID, j.State, j.Queue))
	}
	if len(found) > candidates {
		list = append(list, "more")
	}
	name := r.ID
	if r.Key != "" {
		name = r.Key
	}
	return projection.Job{}, usagef(hint, "%q %s, among them %s", name, several, strings.Join(list, ", "))
}

// usagef is an error in how a job is named.
func usagef(hint, format string, args ...any) error {
	return &fault.Error{Code: fault.ExitUsage, Err: fmt.Errorf(format, args...), Hint: hint, Field: "job"}
}

// suffixOf returns the end of the first id as an example; ids of one batch differ there.
func suffixOf(found []projection.Job) string {
	if len(found) == 0 {
		return ""
	}
	id := string(found[0].ID)
	return id[len(id)-leastSuffix:]
}

// missing is the error for a queue that has no such job. If the queue has none at all, it names a similar
// one that has.
func (r Ref) missing(ctx context.Context, tx *ledger.Tx) error {
	err := fmt.Errorf("%w: %s", commands.ErrNoJob, r)
	unused, lookErr := projection.QueueUnused(ctx, tx, r.Queue)
	if lookErr != nil || !unused {
		return errors.Join(err, lookErr)
	}
	return NeverUsed(ctx, tx, r.Queue, err)
}

// NeverUsed adds a hint to err: that queue has never had a job, and which similar one has.
func NeverUsed(ctx context.Context, tx *ledger.Tx, queue string, err error) error {
	near, lookErr := NearQueue(ctx, tx, queue)
	switch {
	case lookErr != nil:
		return lookErr
	case near != "":
		return fault.WithHint(err, "queue %s has never had a job; did you mean %s?", queue, near)
	}
	return fault.WithHint(err, "queue %s has never had a job", queue)
}

// NearQueue returns the queue with jobs whose name is most similar to queue, or "".
func NearQueue(ctx context.Context, tx *ledger.Tx, queue string) (string, error) {
	names, err := projection.PlainNames(ctx, tx)
	for err == nil {
		near := fault.Nearest(queue, names)
		if near == "" {
			return "", nil
		}
		var unused bool
		if unused, err = projection.QueueUnused(ctx, tx, near); err == nil && !unused {
			return near, nil
		}
		for i, name := range names { // an actor, or a queue that was only paused
			if name == near {
				names = append(names[:i], names[i+1:]...)
				break
			}
		}
	}
	return "", err
}

// Number returns the number of the job that r names. The history of a job may outlive its row in the table
// jobs: without a row, a complete id is searched among the events.
func (r Ref) Number(ctx context.Context, tx *ledger.Tx) (int64, error) {
	j, err := r.Find(ctx, tx)
	if errors.Is(err, commands.ErrNoJob) && len(r.ID) == ulid.EncodedSize {
		if n, lookErr := tx.Number(ctx, event.JobID(strings.ToUpper(r.ID))); lookErr != nil || n != 0 {
			return n, lookErr
		}
	}
	return j.N, err
}

// Read calls [Ref.Find] on a snapshot of its own.
func (r Ref) Read(ctx context.Context, service *commands.Service) (j projection.Job, err error) {
	return ledger.Read(ctx, service.Store, func(tx *ledger.Tx) (projection.Job, error) {
		return r.Find(ctx, tx)
	})
}
