package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// Left says how many jobs have left the ledger that an answer lacks.
type Left struct {
	Jobs    int64  `json:"jobs"`
	Until   string `json:"until"`   // they had ended by then
	Counted bool   `json:"counted"` // false: the filter would have selected so many at most
}

// leftOf is a as an answer has it; nil: it lacks none.
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
