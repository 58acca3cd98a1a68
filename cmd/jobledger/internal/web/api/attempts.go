package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/timespec"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// attemptPage is how many claims of a list without pages are of one snapshot.
const attemptPage = 1000

// Parameters of claims: of all, and of one job.
var (
	AttemptParams = []string{"at", "from", "to", "job", "queue", "worker", "outcome", "overlap",
		"after", "limit"}
	JobAttemptParams = []string{"at", "outcome", "overlap", "after", "limit"}
)

// attempts sends a page of claims, the oldest first, as the verb attempts prints them; those of the job in
// the path, if there is one. With at they are as they were then.
func (a *API) attempts(w http.ResponseWriter, r *http.Request) error {
	params, err := ReadParams(r, AttemptParams, "outcome")
	job := r.PathValue("job")
	if job != "" {
		if params, err = ReadParams(r, JobAttemptParams, "outcome"); err == nil {
			err = checkJob(job)
		}
	}
	if err == nil {
		err = checkQueue(params)
	}
	if err == nil {
		err = a.Within(r, params)
	}
	if err != nil {
		return err
	}
	if wholeList(r) {
		return a.sendAttempts(w, r, params, job)
	}
	limit, err := WholeParam(params, "limit", DefaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	var found []query.Attempt
	var tail int64
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		q, err := a.attemptsQuery(r.Context(), tx, params, job)
		if err != nil {
			return err
		}
		q.Limit = limit + 1
		found, err = q.Read(r.Context(), tx)
		return err
	})
	if err != nil {
		return err
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		params.Set("after", strconv.FormatInt(found[limit-1].Pos, 10))
		next = a.Door.Prefix.At(r.URL.Path + "?" + params.Encode())
		w.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	return sendLines(w, r, tail, found, layout.NewAttemptJSON, next)
}

// attemptsQuery reads which claims the parameters ask for, of one job if it is not "".
func (a *API) attemptsQuery(ctx context.Context, tx *ledger.Tx, params url.Values, job string) (
	q query.Attempts, err error) {
	if params.Has("job") {
		job = params.Get("job")
	}
	w, err := a.windowOf(params)
	if err != nil {
		return q, err
	}
	w.Archived = job != "" // a job that is there is there as a whole
	if q.Span, err = w.Resolve(ctx, tx, a.Now()); err != nil {
		return q, err
	}
	q.Worker, q.Queue = params.Get("worker"), params.Get("queue")
	if q.Outcomes, err = query.ParseOutcomes(params["outcome"]); err != nil {
		return q, err
	}
	if q.Overlap, err = SwitchParam(params, "overlap"); err != nil {
		return q, err
	}
	after, err := WholeParam(params, "after", 0, 0, math.MaxInt)
	if err != nil {
		return q, err
	}
	q.After = int64(after)
	if job != "" {
		q.Job, err = numberOf(ctx, tx, job)
	}
	return q, err
}

// windowOf reads the parameters from, to and at.
func (a *API) windowOf(params url.Values) (w query.Window, err error) {
	for _, end := range []struct {
		name string
		when **query.When
	}{{"from", &w.From}, {"to", &w.To}, {"at", &w.At}} {
		if params.Get(end.name) == "" {
			continue
		}
		when, err := timespec.ReadWhen(end.name, params.Get(end.name), a.Now())
		if err != nil {
			return w, err
		}
		*end.when = &when
	}
	return w, nil
}

// sendAttempts sends all claims that query selects, of the job in the path if there is one.
func (a *API) sendAttempts(w http.ResponseWriter, r *http.Request, query url.Values, job string) error {
	pos, err := a.Tail(r.Context())
	if err != nil {
		return err
	}
	return a.SendLines(w, r, pos, func(ctx context.Context, out io.Writer) error {
		return a.writeAttempts(ctx, query, job, out)
	})
}

// writeAttempts writes the claims that query selects, page by page.
func (a *API) writeAttempts(ctx context.Context, params url.Values, job string, out io.Writer) error {
	var q query.Attempts
	for first := true; ; first = false {
		var found []query.Attempt
		err := a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
			if first {
				if q, err = a.attemptsQuery(ctx, tx, params, job); err != nil {
					return err
				}
				q.Limit = attemptPage
			}
			found, err = q.Read(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		var text bytes.Buffer
		lines := json.NewEncoder(&text)
		lines.SetEscapeHTML(false)
		for _, one := range found {
			if err := lines.Encode(layout.NewAttemptJSON(one)); err != nil {
				return err
			}
		}
		if text.Len() > 0 {
			if _, err := out.Write(text.Bytes()); err != nil {
				return err
			}
		}
		if len(found) < attemptPage {
			return nil
		}
		q.After = found[len(found)-1].Pos
	}
}
