package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger/event"
	"jobledger/projection"
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
// found is true also where that cannot be said, as because a file is missing, which the copy names; then
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
