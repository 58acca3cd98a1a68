package act

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/bulk"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Limits of an act on many jobs.
const (
	MaxJobs     = 10_000
	reasonAbove = 100 // jobs, above which there must be a reason
	chunk       = 500 // jobs that one transaction changes
	samples     = 5   // jobs that are shown of many
)

// Many is an act on the jobs that a filter selects as of a position, or on named jobs.
type Many struct {
	Verb   string
	Reason string
	Filter url.Values    // the parameters of the resource /jobs
	Jobs   []Chosen      // without Filter: these
	Pos    int64         // the set is what the filter selected here
	Spread time.Duration // the jobs are to run within so long from RunAt, each by a hash of its id
	RunAt  *time.Time    // reschedule; nil: now
	DryRun bool
}

// Tally is what became of the jobs of an act.
type Tally struct {
	Act      string        `json:"act"`
	Pos      int64         `json:"pos"`      // as of which the set was selected
	Selected int           `json:"selected"` // jobs that the filter selected, or that were named
	Possible int           `json:"possible"` // of which the act is possible now
	Done     int           `json:"done"`
	Moved    int           `json:"moved_on"` // jobs that changed since pos, and were left as they are
	Not      int           `json:"not_possible"`
	Failed   int           `json:"failed"`
	MovedOn  []event.JobID `json:"moved_on_jobs"` // the first of them
	// the events of the act are within these positions; 0: there are none
	From   int64 `json:"from_pos"`
	To     int64 `json:"to_pos"`
	DryRun bool  `json:"dry_run"` // nothing was changed

	Samples []projection.Job `json:"-"` // the first of which the act is possible
	Why     map[string]int   `json:"-"` // of how many it is not possible, by state or "erased"
}

// selected is a job of the set.
type selected struct {
	ID    event.JobID
	Seq   int64
	Queue string
}

// Select returns the jobs that the filter selects as of pos.
func (a *Acts) Select(ctx context.Context, filter url.Values, pos int64) (set []selected, err error) {
	if !find.Narrow(filter) {
		return nil, door.BadInput("filter", "a filter is one of state, tag, key, group, error, exit, failure, "+
			"last_failure, host, from, to, find; the queue alone is none")
	}
	query := api.Cloned(filter)
	query.Del("limit")
	query.Set("at", fmt.Sprintf("pos:%d", pos))
	if _, err := api.ResourceAt("/jobs").Check(query); err != nil {
		return nil, err
	}
	q, err := a.JobsOf(ctx, query)
	if err != nil {
		return nil, err
	}
	reader := find.Reader{Store: a.Store, Limit: MaxJobs + 1}
	for j, err := range reader.Jobs(ctx, q) {
		if err != nil {
			return nil, err
		}
		if door.CallerOf(ctx).Queue(j.Queue) {
			set = append(set, selected{j.ID, j.Seq, j.Queue})
		}
	}
	if len(set) > MaxJobs {
		return nil, door.Refusal(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf(
			"more than %s match: narrow the filter, or use the command line", words.Count(MaxJobs, "job")))
	}
	return set, nil
}

// Many carries out an act on the set of m, in chunks. A job that changed since the position of the set is
// left as it is. If it is cut off, the events say how far it came, and the same act goes on with the rest.
func (a *Acts) Many(ctx context.Context, m Many) (t Tally, err error) {
	t = Tally{Act: m.Verb, Pos: m.Pos, MovedOn: []event.JobID{}, DryRun: m.DryRun,
		Why: make(map[string]int)}
	if !isBulkVerb(m.Verb) {
		return t, door.BadInput("act", "the acts are "+strings.Join(bulkVerbs, ", "))
	}
	if !door.CallerOf(ctx).Has(rightOf(m.Verb)) {
		return t, check(ctx, rightOf(m.Verb), "")
	}
	if m.Verb == "reschedule" && m.RunAt == nil && m.Spread > 0 {
		m.RunAt = new(a.Now())
	}
	set, err := a.Set(ctx, m)
	if err != nil {
		return t, err
	}
	if t.Selected = len(set); !m.DryRun && len(set) > reasonAbove && m.Reason == "" {
		return t, door.BadInput("reason", fmt.Sprintf(
			"there must be a reason for more than %s: %d match", words.Count(reasonAbove, "job"), len(set)))
	}
	if t.From, err = a.Tail(ctx); err != nil {
		return t, err
	}
	t.From++
	for len(set) > 0 {
		n := min(len(set), chunk)
		if err := a.chunk(ctx, m, set[:n], &t); err != nil {
			return t, err
		}
		set = set[n:]
	}
	if t.To, err = a.Tail(ctx); t.Done == 0 {
		t.From, t.To = 0, 0
	}
	return t, err
}

// chunk carries out the act on some jobs of the set, in one transaction.
func (a *Acts) chunk(ctx context.Context, m Many, set []selected, t *Tally) error {
	var ops []commands.Op
	possible := possible[m.Verb]
	err := a.Store.Read(ctx, func(tx *ledger.Tx) error {
		for _, one := range set {
			j, found, err := projection.Get(ctx, tx, one.ID)
			switch {
			case err != nil:
				return err
			case !found || j.Seq != one.Seq:
				t.movedOn(one.ID)
				continue
			case !possible(j.State) || j.Erased || m.Verb == "retry" && j.State == event.SucceededState:
				t.Not++
				why := j.State.String()
				if j.Erased {
					why = "erased"
				}
				t.Why[why]++
				continue
			}
			c, err := m.command(j)
			if err != nil {
				return err
			}
			if t.Possible++; t.Possible <= samples {
				t.Samples = append(t.Samples, j)
			}
			ops = append(ops, commands.Op{Job: j, Command: c, AsSeen: true})
		}
		return nil
	})
	if err != nil || m.DryRun || len(ops) == 0 {
		return err
	}
	results, err := a.Service.ApplyBatch(ctx, door.CallerOf(ctx).Actor, ops)
	if err != nil {
		return err
	}
	for i, r := range results {
		switch {
		case errors.Is(r.Err, commands.ErrConflict), errors.Is(r.Err, commands.ErrNoJob):
			t.movedOn(ops[i].Job.ID)
		case r.Err != nil:
			t.Failed++
			a.Report("%s of job %s: %v", m.Verb, ops[i].Job.ID, r.Err)
		case r.Job.Seq != ops[i].Job.Seq:
			t.Done++
		}
	}
	return nil
}

// movedOn counts a job that was left unchanged.
func (t *Tally) movedOn(id event.JobID) {
	if t.Moved++; len(t.MovedOn) < 20 {
		t.MovedOn = append(t.MovedOn, id)
	}
}

// command is the command for j.
func (m Many) command(j projection.Job) (commands.Command, error) {
	delay := bulk.Spread(j.ID, m.Spread)
	r := Request{Reason: m.Reason}
	if m.Verb == "reschedule" {
		at := time.Time{}
		if m.RunAt != nil {
			at = m.RunAt.Add(delay)
		}
		r.RunAt = &at
	}
	return r.command(m.Verb, delay)
}
