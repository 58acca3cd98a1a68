package act

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// MaxChosen is how many jobs an act may name one by one: those of the largest page.
const MaxChosen = 1000

// Chosen is a job that an act names.
type Chosen struct {
	ID  event.JobID `json:"id"`
	Seq int64       `json:"seq,omitempty"` // with which the caller saw it; 0: the one at the position of the set
}

// Set returns the jobs that m names, or those that its filter selects.
func (a *Acts) Set(ctx context.Context, m Many) ([]selected, error) {
	switch {
	case len(m.Jobs) == 0:
		return a.Select(ctx, m.Filter, m.Pos)
	case len(m.Filter) > 0:
		return nil, door.BadInput("jobs", "a filter and jobs cannot be combined")
	case len(m.Jobs) > MaxChosen:
		return nil, door.Refusal(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf(
			"more than %s are named: use a filter", words.Count(MaxChosen, "job")))
	}
	return a.choose(ctx, m.Jobs, m.Pos)
}

// choose returns the jobs that are named, as they were at pos.
func (a *Acts) choose(ctx context.Context, jobs []Chosen, pos int64) (set []selected, err error) {
	for i, one := range jobs {
		if len(one.ID) != ulid.EncodedSize || !api.IsJobID(string(one.ID)) {
			return nil, door.BadInput("jobs", fmt.Sprintf("%.40q is not the id of a job",
				one.ID))
		}
		if slices.ContainsFunc(jobs[:i], func(other Chosen) bool { return other.ID == one.ID }) {
			return nil, door.BadInput("jobs", fmt.Sprintf("job %s is named twice", one.ID))
		}
	}
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		if pos < 1 || pos > tail {
			return fault.Usagef("at: the ledger ends at pos:%d", tail)
		}
		var open []int64
		set = make([]selected, len(jobs))
		numbers := make([]int64, len(jobs))
		for i, one := range jobs {
			j, found, err := projection.Get(ctx, tx, one.ID)
			if err != nil {
				return err
			}
			if !found || j.N > pos || !door.CallerOf(ctx).Queue(j.Queue) {
				return fault.Exitf(fault.ExitNoJob, "there is no job %s", one.ID)
			}
			set[i], numbers[i] = selected{ID: one.ID, Seq: one.Seq, Queue: j.Queue}, j.N
			if one.Seq == 0 {
				open = append(open, j.N)
			}
		}
		if len(open) == 0 {
			return nil
		}
		then, err := projection.AtPos(ctx, tx, pos)
		if err != nil {
			return err
		}
		seen, err := projection.JobsAsOf(ctx, tx, open, then)
		for i := range set {
			set[i].Seq = cmp.Or(set[i].Seq, seen[numbers[i]].Seq)
		}
		return err
	})
	return set, err
}
