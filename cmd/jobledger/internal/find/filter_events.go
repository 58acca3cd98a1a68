package find

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// EventFields are what events can be asked for by, but for the job.
var EventFields = []string{"at", "kind", "worker", "queue", "actor", "from", "to", "after", "last"}

// Events reads which events are asked for; the field job is left to the caller.
func Events(asked url.Values, now time.Time) (q query.Events, err error) {
	w, err := Window(asked, now)
	if err != nil {
		return q, err
	}
	q.From, q.To, q.At = w.From, w.To, w.At
	q.Filter.Worker, q.Filter.Queue, q.Filter.Actor = asked.Get("worker"), asked.Get("queue"), asked.Get("actor")
	if q.Filter.Kinds, err = EventKinds(asked["kind"]); err != nil {
		return q, err
	}
	after, _, err := whole(asked, "after", 0, math.MaxInt)
	if err != nil {
		return q, err
	}
	q.Filter.After = int64(after)
	q.Last, _, err = whole(asked, "last", 1, math.MaxInt)
	return q, err
}

// AttemptFields are what claims can be asked for by, but for the job and the owner's overlap.
var AttemptFields = []string{"at", "from", "to", "queue", "worker", "outcome", "code"}

// Attempts reads which claims are asked for in the ledger of tx; job is the number of their job, or 0.
func Attempts(ctx context.Context, tx *ledger.Tx, asked url.Values, job int64, now time.Time) (
	q query.Attempts, err error) {
	w, err := Window(asked, now)
	if err != nil {
		return q, err
	}
	w.Archived = job != 0 // a job that is there is there as a whole
	if q.Span, err = w.Resolve(ctx, tx, now); err != nil {
		return q, err
	}
	q.Job, q.Worker, q.Queue = job, asked.Get("worker"), asked.Get("queue")
	if asked.Has("code") {
		q.Code = new(asked.Get("code"))
	}
	q.Outcomes, err = query.ParseOutcomes(asked["outcome"])
	return q, err
}

// KindNames returns the names of all kinds of events.
func KindNames() []string { return words.Of(event.Kinds(), event.Kind.String) }

// EventKinds returns the kinds of events that words select; none: all. A word is a kind, or - and a kind that
// is left out. If no word is a kind, all others are selected.
func EventKinds(words []string) (kinds []event.Kind, err error) {
	var out []event.Kind
	for _, word := range words {
		name, not := strings.CutPrefix(word, "-")
		k, err := event.ParseKind(name)
		switch {
		case err != nil:
			return nil, badName("kind", "kind", name, KindNames())
		case not:
			out = append(out, k)
		default:
			kinds = append(kinds, k)
		}
	}
	if len(out) == 0 {
		return kinds, nil
	}
	if len(kinds) == 0 {
		kinds = event.Kinds()
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k event.Kind) bool { return slices.Contains(out, k) })
	if len(kinds) == 0 {
		return nil, badInput("kind", "no kind is left")
	}
	return kinds, nil
}
