package find

import (
	"context"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/ledger"
	"jobledger/projection"
)

// lastWord as a JOB is the newest job.
const lastWord = "last"

// Typed is the job that a person named so: by its id, an end of that, its number, or as the last one.
// Programs that name a job by its id, such as those of the API, have a [Ref] without a number.
func Typed(text string) Ref {
	if text == lastWord {
		return Ref{Last: true}
	}
	r := Ref{ID: text}
	// Ids begin with 0 for some thousand years, unless a producer gave another one; numbers do not.
	if text != "" && text[0] != '0' && len(text) <= 18 && strings.Trim(text, "0123456789") == "" {
		r.NO, _ = strconv.ParseInt(text, 10, 64)
	}
	return r
}

// findByNumber finds the job whose first event is at pos r.NO. If an id begins with these digits too, it
// is left open which job is meant.
func (r Ref) findByNumber(ctx context.Context, tx *ledger.Tx) (projection.Job, error) {
	found, err := projection.Find(ctx, tx, r.ID, candidates+1)
	if err != nil {
		return projection.Job{}, err
	}
	numbered, err := projection.GetMany(ctx, tx, []int64{r.NO})
	if err != nil {
		return projection.Job{}, err
	}
	if j, ok := numbered[r.NO]; ok && (len(found) != 1 || found[0].N != j.N) {
		found = append([]projection.Job{j}, found...)
	}
	j, err := r.only(found, nil, "is a number or the beginning of an id of several jobs", "give the whole id")
	if len(found) == 0 {
		err = fault.WithHint(err, "the numbers of jobs are in the column NO of 'jobledger list'")
	}
	return j, err
}
