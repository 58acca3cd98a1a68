package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// MayBeArchived reports whether what r failed with, err, is that it is about what may have left the ledger
// for the archive, which is known, or about one job, that the caller may see, which has.
func (a *API) MayBeArchived(r *http.Request, err error) bool {
	if err == nil || a.Archive == "" {
		return false
	}
	ctx := r.Context()
	if p, ok := errors.AsType[*door.Problem](err); errors.Is(err, projection.ErrArchived) ||
		ok && p.Code == "archived" {
		return true
	}
	id := cmp.Or(r.PathValue("job"), r.URL.Query().Get("job"))
	if id == "" || !errors.Is(err, commands.ErrNoJob) {
		return false
	}
	queue, found := a.archivedQueue(ctx, id)
	return found && door.CallerOf(ctx).Queue(queue)
}

// archivedQueue returns the queue of the job that has left the ledger, whose id is, or begins with, id.
// found is true even if that cannot be said, as because a file is missing, which the copy names; then
// queue is "".
func (a *API) archivedQueue(ctx context.Context, id string) (queue string, found bool) {
	if a.Archive == "" {
		return "", false
	}
	history, _, err := archive.History(ctx, a.Store, a.Archive, id)
	if err != nil {
		return "", !errors.Is(err, commands.ErrNoJob)
	}
	for _, e := range history {
		if b, ok := e.Body.(*event.Enqueued); ok {
			queue = b.Queue
		}
	}
	return queue, true
}

// Left says how many jobs have left the ledger that an answer lacks.
type Left struct {
	Jobs    int64  `json:"jobs"`
	Until   string `json:"until"`   // they had ended by then
	Counted bool   `json:"counted"` // false: the filter would have selected so many at most
}

// leftOf is the JSON form of a; nil: the answer lacks no job.
func leftOf(a projection.Absent) *Left {
	if a.Jobs == 0 {
		return nil
	}
	return &Left{a.Jobs, event.FormatTime(a.Until), a.Counted}
}

// AbsentJobs returns how many jobs that have left the ledger a list of jobs by query lacks. One that begins
// with a moment lacks none: it is answered from the archive, or they had ended before.
func (a *API) AbsentJobs(ctx context.Context, query url.Values) (absent projection.Absent, err error) {
	if query.Get("from") != "" {
		return absent, nil
	}
	f := projection.Filter{Queues: query["queue"]}
	for _, name := range query["state"] {
		if s, err := event.ParseState(name); err == nil {
			f.States = append(f.States, s)
		}
	}
	return ledger.Read(ctx, a.Store, func(tx *ledger.Tx) (projection.Absent, error) {
		return projection.AbsentFrom(ctx, tx, f)
	})
}

// absent returns how many jobs that have left the ledger an answer of res lacks.
func (a *API) absent(ctx context.Context, res Resource, query url.Values) (absent projection.Absent,
	err error) {
	switch {
	case res.form == jobs:
		return a.AbsentJobs(ctx, query)
	case res.Path == "/status":
		err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
			absent, err = status.AbsentAsOf(ctx, tx, query.Has("at"))
			return err
		})
	}
	return absent, err
}

// setAbsent says in a header how many jobs the answer lacks.
func setAbsent(h http.Header, absent projection.Absent) {
	if absent.Jobs > 0 {
		h.Set("Jobledger-Left", strconv.FormatInt(absent.Jobs, 10))
	}
}
