package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/graph"
	"jobledger/projection/query"
)

// IsJobID reports whether text may be the id of a job, or its beginning.
func IsJobID(text string) bool {
	return text != "" && len(text) <= ulid.EncodedSize &&
		strings.Trim(strings.ToUpper(text), ulid.Encoding) == ""
}

// checkJob returns an error unless text may be the id of a job.
func checkJob(text string) error {
	if !IsJobID(text) {
		return door.BadInput("job", fmt.Sprintf("%.40q is not the id of a job", text))
	}
	return nil
}

// numberOf returns the number of the job that text is the id of, or the beginning of it.
func numberOf(ctx context.Context, tx *ledger.Tx, text string) (int64, error) {
	if err := checkJob(text); err != nil {
		return 0, err
	}
	return find.Ref{ID: text}.Number(ctx, tx)
}

// SearchTime is for how long a list of jobs by params is searched; 0: to its end.
func (a *API) SearchTime(params url.Values) time.Duration {
	if params.Get("by") == find.ByFinished { // no parameter would go on where it ended
		return 0
	}
	return cmp.Or(a.Search, SearchTime)
}

// JobsOf returns the question that the parameters of /jobs ask. It returns a projection.ArchivedError if the
// answer is in the archive, and door.ErrNoBodies if the caller may not see the payloads that it looks into.
func (a *API) JobsOf(ctx context.Context, params url.Values) (q query.Jobs, err error) {
	f, err := find.Jobs(params, a.now(ctx))
	if err != nil {
		return q, err
	}
	if find.AsksPayloads(f.Filter) && !MaySeeBodies(ctx) {
		return q, door.ErrNoBodies
	}
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		if q.At, err = a.asOf(ctx, tx, params); err == nil {
			q.Filter, err = f.Resolve(ctx, tx)
		}
		return err
	})
	if err != nil {
		return q, err
	}
	keys, ids := find.Named(params)
	return q, find.Left(ctx, a.Store, a.Archive, q, keys, ids)
}

// Page returns at most limit jobs that q asks for, and the number of the one after them; 0: there is none.
// The search takes at most about searchTime; ended says how far it came if that was not to the end.
func (a *API) Page(ctx context.Context, q query.Jobs, limit int, searchTime time.Duration) (found []query.Job,
	next int64, ended *find.Ended, err error) {
	reader := find.Reader{Store: a.Store, Limit: limit + 1, SearchTime: searchTime}
	for j, err := range reader.Jobs(ctx, q) {
		if err != nil {
			return nil, 0, nil, err
		}
		found = append(found, j)
	}
	if len(found) > limit {
		return found[:limit], found[limit].N, nil, nil
	}
	return found, 0, reader.Ended, nil
}

// untilTerm is how NextJobs ends a search.
var untilTerm = regexp.MustCompile(` *until:pos:\d+$`)

// NextJobs returns the parameters of the page of jobs after that of params. It begins with the job that has
// the number next, or if that is 0, where the last search stopped. It is nil if there is no next page, and if
// no parameter can name the next page, as for jobs by the time at which they finished.
func NextJobs(params url.Values, next int64, ended *find.Ended) url.Values {
	switch {
	case next == 0 && ended == nil, next != 0 && params.Get("by") == find.ByFinished:
		return nil
	case next == 0:
		next = ended.Reached
	}
	params = Cloned(params)
	if find.ByOf(params) == find.ByFailed { // to is about the failure
		terms := untilTerm.ReplaceAllString(params.Get("find"), "")
		params.Set("find", strings.TrimSpace(fmt.Sprintf("%s until:pos:%d", terms, next)))
		return params
	}
	params.Set("to", fmt.Sprintf("pos:%d", next))
	return params
}

func (a *API) readJobs(q *question) error {
	asked, err := a.JobsOf(q, q.params)
	if err != nil {
		return err
	}
	row := func(j query.Job) error { return q.add(print.JobJSON(j.Then, j.Exit, asked.At != nil)) }
	searchTime := a.SearchTime(q.params)
	if q.limit == 0 {
		reader := find.Reader{Store: a.Store}
		if searchTime > 0 {
			reader.SearchTime = math.MaxInt64 // it looks in windows, so that no snapshot is long
		}
		for j, err := range reader.Jobs(q, asked) {
			if err == nil {
				err = row(j)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	found, next, ended, err := a.Page(q, asked, q.limit, searchTime)
	for _, j := range found {
		if err == nil {
			err = row(j)
		}
	}
	q.ended, q.next = ended, NextJobs(q.params, next, ended)
	return err
}

func (a *API) readJob(q *question) error {
	var j state.Job
	err := a.Store.Read(q, func(tx *ledger.Tx) error {
		at, err := a.asOf(q, tx, q.params)
		if err != nil {
			return err
		}
		now, err := find.Ref{ID: q.job}.Find(q, tx)
		if err == nil {
			j, err = state.ReadJob(q, tx, now, at)
		}
		return err
	})
	if j.Later == 0 { // it is as it is now
		q.seq = j.Seq
	}
	if err == nil && j.State == 0 {
		err = NotYet(j.ID, j.Later)
	}
	if err != nil {
		return err
	}
	return q.add(print.FullJobJSON(j, MaySeeBodies(q)))
}

// NotYet is the answer about a job before it was enqueued.
func NotYet(id event.JobID, now event.State) error {
	return fault.Exitf(fault.ExitNothing, "job %s was not enqueued yet; now it is %s", id, now)
}

func (a *API) readHistory(q *question) error {
	var h query.Happened
	var of query.History
	err := a.Store.Read(q, func(tx *ledger.Tx) (err error) {
		if of.At, err = a.asOf(q, tx, q.params); err != nil {
			return err
		}
		if of.Job, err = numberOf(q, tx, q.job); err == nil {
			h, err = of.Read(q, tx)
		}
		return err
	})
	if errors.Is(err, commands.ErrNoJob) && a.Archive != "" {
		all, _, archiveErr := archive.History(q, a.Store, a.Archive, q.job)
		if !errors.Is(archiveErr, commands.ErrNoJob) {
			h, err = of.Of(all), archiveErr
		}
	}
	for _, e := range h.Events {
		if err == nil {
			err = q.add(e)
		}
	}
	return err
}

func (a *API) readWhy(q *question) error {
	var why state.Why
	var j projection.Job
	var past query.Past
	err := a.Store.Read(q, func(tx *ledger.Tx) (err error) {
		if past, err = a.Past(q, tx, q.params); err != nil {
			return err
		}
		if j, err = (find.Ref{ID: q.job}).Find(q, tx); err == nil {
			why, err = state.Explain(q, tx, j, past, a.now(q))
		}
		return err
	})
	if err == nil && why.State == "" {
		err = NotYet(j.ID, j.State)
	}
	if err != nil {
		return err
	}
	return q.add(print.WhyJSON(why, j.State, past))
}

// Depth is how many steps from a job its dependencies are read, unless it is said.
const Depth = 3

func (a *API) readDependencies(q *question) error {
	depth, err := WholeParam(q.params, "depth", Depth, 1, 10)
	if err != nil {
		return err
	}
	return readAll(a, q, func(tx *ledger.Tx, past query.Past) ([]graph.Graph, error) {
		now, err := (find.Ref{ID: q.job}).Find(q, tx)
		around := graph.Around{Job: now, At: past.Or(a.now(q)), Depth: depth}
		if caller := door.CallerOf(q); !caller.AllQueues() {
			around.See = caller.Queue
		}
		if past.Given && err == nil {
			around.Job, _, err = projection.JobAsOf(q, tx, now.N, past.Moment)
		}
		if err == nil && around.Job.State == 0 {
			err = NotYet(now.ID, now.State)
		}
		if err != nil {
			return nil, err
		}
		g, err := around.Read(q, tx)
		return []graph.Graph{g}, err
	}, print.NewDependenciesJSON)
}

// readOwner answers also that there was no owner.
func (a *API) readOwner(q *question) error {
	var o print.Owner
	err := a.Store.Read(q, func(tx *ledger.Tx) error {
		at := "now"
		if q.params.Has("at") {
			at = q.params.Get("at")
		}
		m, err := a.Moment(q, tx, "at", at)
		if err != nil {
			return err
		}
		n, err := numberOf(q, tx, q.job)
		if err == nil {
			o, err = print.ReadOwner(q, tx, n, m)
		}
		return err
	})
	if err != nil {
		return err
	}
	return q.add(print.NewOwnerJSON(o))
}
