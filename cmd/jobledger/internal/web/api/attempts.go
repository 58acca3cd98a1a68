package api

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
)

// Parameters of claims: of all, and of one job.
var (
	AttemptParams = []string{"at", "from", "to", "job", "queue", "worker", "outcome", "overlap",
		"after", "limit"}
	JobAttemptParams = []string{"at", "outcome", "overlap", "after", "limit"}
)

// attemptOutcomes are how a claim can have ended, or that it has not.
var attemptOutcomes = []string{"succeeded", "failed", "released", "reclaimed", "cancelled", "open"}

// attempts sends a page of claims, the oldest first, as the verb attempts prints them; those of the job in
// the path, if there is one. With at they are as they were then.
func (a *API) attempts(w http.ResponseWriter, r *http.Request) error {
	query, err := ReadParams(r, AttemptParams, "outcome")
	job := r.PathValue("job")
	if job != "" {
		if query, err = ReadParams(r, JobAttemptParams, "outcome"); err == nil && !IsJobID(job) {
			err = door.BadInput("job", "this is not the id of a job")
		}
	}
	if err == nil {
		err = checkQueue(query)
	}
	if err == nil {
		err = a.Within(r, query)
	}
	if err != nil {
		return err
	}
	if wholeList(r) {
		return a.sendAttempts(w, r, query, job)
	}
	limit, err := WholeParam(query, "limit", DefaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	var found []attempts.Attempt
	var tail int64
	err = a.Store.Read(r.Context(), func(tx *ledger.Tx) (err error) {
		if tail, err = tx.Tail(r.Context()); err != nil {
			return err
		}
		f, err := a.attemptFilter(r.Context(), tx, query, job)
		if err != nil {
			return err
		}
		f.Limit = limit + 1
		if found, err = attempts.List(r.Context(), tx, f); err != nil || !query.Has("at") {
			return err
		}
		return asOfThen(r.Context(), tx, found, f.To)
	})
	if err != nil {
		return err
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		query.Set("after", strconv.FormatInt(found[limit-1].Pos, 10))
		next = a.Door.Prefix.At(r.URL.Path + "?" + query.Encode())
		w.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	return sendLines(w, r, tail, found, layout.NewAttemptJSON, next)
}

// attemptFilter reads which claims the query selects.
func (a *API) attemptFilter(ctx context.Context, tx *ledger.Tx, query url.Values, job string) (
	f attempts.Filter, err error) {
	f = attempts.Filter{Worker: query.Get("worker"), Queue: query.Get("queue")}
	for _, word := range query["outcome"] {
		if !slices.Contains(attemptOutcomes, word) {
			return f, door.BadInput("outcome", "outcome is one of "+
				strings.Join(attemptOutcomes, ", "))
		}
		kind, _ := event.ParseKind(word) // 0 for open
		f.Outcomes = append(f.Outcomes, kind)
	}
	if query.Has("at") && (len(f.Outcomes) > 0 || query.Has("to")) {
		return f, door.BadInput("at", "at excludes outcome and to")
	}
	if f.Overlap, err = SwitchParam(query, "overlap"); err != nil {
		return f, err
	}
	after, err := WholeParam(query, "after", 0, 0, math.MaxInt)
	if err != nil {
		return f, err
	}
	f.After = int64(after)
	if query.Has("job") {
		job = query.Get("job")
	}
	if job != "" {
		if f.Job, err = (jobref.Ref{ID: job}).Number(ctx, tx); err != nil {
			return f, err
		}
	}
	switch from := query.Get("from"); {
	case from == "" && f.Job == 0:
		err = projection.AfterHorizon(ctx, tx, 0)
	case from != "":
		when, err := cli.ParseWhen("from", from, a.Now())
		if err != nil {
			return f, err
		}
		if when.ByPos { // what ended at this very moment was live at it
			f.From, err = projection.AtPos(ctx, tx, max(when.Pos-1, 0))
		} else {
			f.From, err = projection.AtTime(ctx, tx, when.Time.Add(-1))
		}
		if err != nil {
			return f, err
		}
	}
	if err != nil {
		return f, err
	}
	for _, name := range []string{"at", "to"} {
		if query.Has(name) {
			f.To, err = a.Moment(ctx, tx, name, query.Get(name))
			return f, err
		}
	}
	f.To, err = projection.AtPos(ctx, tx, math.MaxInt64)
	return f, err
}

// asOfThen makes claims as they were at m: what came later is not known yet.
func asOfThen(ctx context.Context, tx *ledger.Tx, found []attempts.Attempt, m projection.Moment) error {
	for i := range found {
		c := &found[i]
		if c.EndedAt.After(m.At) {
			c.EndedAt, c.Outcome, c.ExitCode, c.Signal = time.Time{}, 0, nil, ""
		}
		if !c.LastHeartbeat.After(m.At) {
			continue
		}
		c.LastHeartbeat = time.Time{}
		f := ledger.Filter{Job: c.N, Kinds: []event.Kind{event.KindHeartbeat, event.KindTakenOver}, After: c.Pos,
			Until: m.Pos, Limit: 1, Last: true}
		for e, err := range tx.Events(ctx, f) {
			if err != nil {
				return err
			}
			c.LastHeartbeat = e.At
		}
	}
	return nil
}
