package query

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/status"
)

// Attempts asks for claims: who worked on which job, from when to when. Those of a window are the ones that
// were live at some time within it; of Queue and Worker, if the window has them.
type Attempts struct {
	Span
	Job      int64        // the job's number; 0: all
	Outcomes []event.Kind // how they ended; 0 among them: not yet. None: all. See [ParseOutcomes]
	Code     *string      // only those that ended with this error code, or for this reason; nil: all
	Overlap  bool         // only claims under which a job ran while another owner worked on it too
	After    int64        // claims whose Pos is greater: the next page
	Limit    int          // at most so many; 0: no limit
	Last     bool         // the last Limit of them, instead of the first; After must be 0
}

// Attempt is one claim, from its beginning to its end.
type Attempt = attempts.Attempt

// Why is what explains the state of a job, and Diff what differs between two moments.
type (
	Why  = status.Why
	Diff = status.Diff
)

// Read returns the claims, in the order in which they began. With an At, they are as they were then: a claim
// that ended later is open, and Outcomes and Overlap select by what was known then.
func (q Attempts) Read(ctx context.Context, tx *ledger.Tx) ([]Attempt, error) {
	f := attempts.Filter{From: q.From, To: q.To, At: q.At, Job: q.Job, Worker: q.Worker, Queue: q.Queue,
		Outcomes: q.Outcomes, Code: q.Code, Overlap: q.Overlap, After: q.After, Limit: q.Limit, Last: q.Last}
	found, err := attempts.List(ctx, tx, f)
	if err != nil || q.Job == 0 {
		return found, err
	}
	replaced := ledger.Filter{Job: q.Job, Kinds: []event.Kind{event.KindReplaced}, Until: q.At.Pos}
	for e, err := range tx.Events(ctx, replaced) {
		if err != nil {
			return nil, err
		}
		for i := range found {
			if a := &found[i]; a.Pos < e.Pos && a.Replaced.IsZero() {
				a.Replaced = e.At
			}
		}
	}
	return found, nil
}

// Outcomes are the words for how a claim ended, or that it has not.
var Outcomes = []string{"succeeded", "failed", "released", "reclaimed", "cancelled", "open"}

// ParseOutcomes returns the kinds that words are of. It returns an [*InputError] for another word.
func ParseOutcomes(words []string) (kinds []event.Kind, err error) {
	for _, word := range words {
		if !slices.Contains(Outcomes, word) {
			e := badInput("outcome", "there is no outcome %q", word)
			e.Hint = "the outcomes are " + strings.Join(Outcomes, ", ")
			return nil, e
		}
		kind, _ := event.ParseKind(word) // 0 for open
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// Owner asks which claim held a job at a moment. A claim holds from its beginning until just before its end.
type Owner struct {
	Job int64 // its number
	At  projection.Moment
}

// Read returns the state of the job then, 0 if it was not enqueued yet, and the claim that held it, which has
// its end also where that came later; the zero Attempt if none did.
func (q Owner) Read(ctx context.Context, tx *ledger.Tx) (event.State, Attempt, error) {
	return attempts.OwnerAt(ctx, tx, q.Job, q.At)
}

// Longest asks for the claims that ended within a window and had lasted longest, or used most.
type Longest struct {
	Span
	Limit int
	By    string // one of [LongestBy]; "": elapsed. Claims of which it is not known are left out
}

// LongestBy are what claims can be ordered by: how long they lasted, processor time, memory.
var LongestBy = attempts.Measures

// longestPage is how many claims are read at a time.
const longestPage = 5000

// Read returns the claims, those with the most first, then by job. It reads the claims that were live within
// the window.
func (q Longest) Read(ctx context.Context, tx *ledger.Tx) (found []Attempt, err error) {
	all := Attempts{Span: q.Span, Limit: longestPage, Outcomes: event.KindsThat(event.Kind.EndsClaim)}
	all.At = q.To
	for {
		page, err := all.Read(ctx, tx)
		if err != nil {
			return nil, err
		}
		for _, a := range page {
			if a.Measured(q.By) > 0 {
				found = append(found, a)
			}
		}
		slices.SortFunc(found, func(a, b Attempt) int {
			more := cmp.Compare(b.Measured(q.By), a.Measured(q.By))
			return cmp.Or(more, cmp.Compare(a.Job, b.Job), cmp.Compare(a.Pos, b.Pos))
		})
		found = found[:min(len(found), q.Limit)]
		if len(page) < longestPage {
			return found, nil
		}
		all.After = page[len(page)-1].Pos
	}
}
