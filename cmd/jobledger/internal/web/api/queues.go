package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Within returns an error unless the caller of r may see what is asked for: it is for all queues, or the
// request is about one job, by its whole id, or names queues, that it is for. The archive says of which queue
// a job is that has left the ledger.
func (a *API) Within(r *http.Request, query url.Values) error {
	c := door.CallerOf(r.Context())
	if c.AllQueues() {
		return nil
	}
	if id := r.PathValue("job"); id != "" {
		missing := fmt.Errorf("%w: %.40s", commands.ErrNoJob, id)
		if !IsJobID(id) {
			return missing
		}
		whole := event.JobID(strings.ToUpper(id))
		var queue string
		err := a.Store.Read(r.Context(), func(tx *ledger.Tx) error {
			j, _, err := projection.Get(r.Context(), tx, whole)
			queue = j.Queue
			return err
		})
		if err == nil && queue == "" && len(whole) == ulid.EncodedSize {
			queue, _ = a.archivedQueue(r.Context(), string(whole))
		}
		if err == nil && (queue == "" || !c.Queue(queue)) {
			err = missing
		}
		return err
	}
	for _, q := range query["queue"] {
		if !c.Queue(q) {
			return door.Refusal(http.StatusForbidden, "forbidden", "the token is not for the queue "+q)
		}
	}
	if len(query["queue"]) == 0 {
		return door.Refusal(http.StatusForbidden, "forbidden",
			"the token is for some queues only: name them with the parameter queue")
	}
	return nil
}

// checkQueue returns an error unless the parameter queue, where it is given, may be the name of a queue: a
// name that none can have would find nothing, silently.
func checkQueue(query url.Values) error {
	for _, name := range query["queue"] {
		if err := commands.CheckQueue(name); err != nil {
			return err
		}
	}
	return nil
}

// ofQueues reports whether the resource is about one job, or about queues that can be named.
func (res Resource) ofQueues() bool {
	return strings.Contains(res.Path, "{job}") || res.form > one
}
