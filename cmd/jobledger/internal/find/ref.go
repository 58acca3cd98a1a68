package find

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/ledger"
	"jobledger/projection"
)

// Forms is a hint at how a job may be named.
const Forms = "a job is its number (NO in list), its id, the beginning of it, its end as in …Q7ZK, last, " +
	"--key KEY -q QUEUE, or -q QUEUE --last"

// Ref names a job. Exactly one of ID, Key and Last is set; NO is what ID may be besides.
type Ref struct {
	ID    string // as it was typed
	NO    int64  // the number that ID is, for [Typed]; 0: it is none
	Key   string // in Queue; "" as Queue: in any, if it is in one only
	Last  bool   // the newest of Queue, or of all where Queue is ""
	Queue string

	until int64 // with Last: only jobs up to this number; 0: no limit
}

// String returns r as an error shows it.
func (r Ref) String() string {
	switch {
	case r.Last && r.Queue == "" && r.until > 0:
		return fmt.Sprintf("there was none yet at pos %d", r.until)
	case r.Last && r.Queue == "":
		return "there is none"
	case r.Last && r.until > 0:
		return fmt.Sprintf("queue %s had none yet at pos %d", r.Queue, r.until)
	case r.Last:
		return "queue " + r.Queue + " has none"
	case r.Key != "" && r.Queue != "":
		return fmt.Sprintf("none in queue %s has the key %q", r.Queue, r.Key)
	case r.Key != "":
		return fmt.Sprintf("none has the key %q", r.Key)
	}
	return r.ID
}

// AsOf is r where the newest job of a queue is the newest at m.
func (r Ref) AsOf(m projection.Moment) Ref {
	r.until = m.Pos
	return r
}

// lastWord as a JOB is the newest job.
const lastWord = "last"

// Typed is the job that a person named: by its id, an end of the id, its number, or as the last one. Programs
// that name a job by its id, such as those of the API, have a [Ref] without a number.
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

// findByNumber finds the job whose first event is at pos r.NO. If an id begins with these digits too, the
// reference is ambiguous.
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
	j, err := r.only(ctx, tx, found, nil, "is a number or the beginning of an id of several jobs",
		"give the whole id")
	if len(found) == 0 {
		err = fault.WithHint(err, "the numbers of jobs are in the column NO of 'jobledger list'")
	}
	return j, err
}
