package lineartest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A history is linearizable if all answers can be explained by commands that were applied one after another,
// each at some time between its call and its answer. This file specifies, independently of the program, what
// sequential commands do to a job. Each job of these histories has its own queue, so a history can be checked
// job by job.

// linearCall is a call that concerns one job.
type linearCall struct {
	Op    string // enqueue, claim, heartbeat, succeed, fail, release, sweep, cancel, retry, get, given back
	Token string `json:",omitempty"`
	// the payload of enqueue; what ends a claim, sent again, must have the same
	Content string   `json:",omitempty"`
	Tokens  []string `json:",omitempty"` // of a claim that may have been given back
	// the ledger's clock just before, in microseconds: a lower bound of the transaction's reading
	After int64
}

// linearAnswer is the answer to a call about one job.
type linearAnswer struct {
	Job int
	// none (there is no such job, or none to claim), lost, cancelled, conflict, unknown
	Err      string `json:",omitempty"`
	Existing bool   `json:",omitempty"` // from enqueue
	State    string `json:",omitempty"`
	Token    string `json:",omitempty"`
	Untold   bool   `json:",omitempty"` // the token: outside, only its owner is given it
	Seq      int64  `json:",omitempty"`
	Attempt  int    `json:",omitempty"`
	Failures int    `json:",omitempty"`
	RunAt    int64  `json:",omitempty"`
	Lease    int64  `json:",omitempty"`
	Before   int64  // the ledger's clock just after
}

// linearJob is a job between two commands; the zero value is a job that was never enqueued.
type linearJob struct {
	state, payload string
	seq            int64
	failures       int
	runAt, lease   int64 // 0: not known, because the caller got no answer
	claims         []linearClaim
}

type linearClaim struct {
	token string // "?": not known
	end   string // succeed, fail, release, reclaimed, cancelled; empty: it is live
	with  string // its content
}

// linearMax is the max_attempts of all these jobs.
const linearMax = 4

func (j linearJob) held() bool  { return j.state == "claimed" || j.state == "running" }
func (j linearJob) final() bool { return j.state != "" && j.state != "queued" && !j.held() }

// begin returns j after one more claim.
func (j linearJob) begin(token string, lease int64) linearJob {
	j.claims = append(slices.Clone(j.claims), linearClaim{token: token})
	j.state, j.lease, j.seq = "claimed", lease, j.seq+1
	return j
}

// ended returns j after its live claim, if there is one, ended in this way.
func (j linearJob) ended(how, with, state string, runAt int64) linearJob {
	if j.held() {
		j.claims = slices.Clone(j.claims)
		last := &j.claims[len(j.claims)-1]
		last.end, last.with = how, with
	}
	j.state, j.runAt, j.lease, j.seq = state, runAt, 0, j.seq+1
	return j
}

// failed returns j after a failure, which is retried unless there were too many.
func (j linearJob) failed(how, with string, runAt int64) linearJob {
	j.failures++
	if j.failures >= linearMax {
		return j.ended(how, with, "failed", 0)
	}
	return j.ended(how, with, "queued", runAt)
}

// is compares j with an answer, and learns from it what was not known.
func (j linearJob) is(a linearAnswer) []linearJob {
	if a.Err != "" || j.state != a.State || j.seq != a.Seq || len(j.claims) != a.Attempt ||
		j.failures != a.Failures {
		return nil
	}
	if j.state == "queued" {
		if j.runAt == 0 {
			j.runAt = a.RunAt
		}
		if j.runAt != a.RunAt {
			return nil
		}
	}
	if j.held() {
		if j.lease == 0 {
			j.lease = a.Lease
		}
		n := len(j.claims) - 1
		if j.claims[n].token == "?" && !a.Untold {
			j.claims = slices.Clone(j.claims)
			j.claims[n].token = a.Token
		}
		if j.lease != a.Lease || j.claims[n].token != a.Token && !a.Untold {
			return nil
		}
	}
	return []linearJob{j}
}

// step returns the possible states of j after a call with this answer, or none if the answer is impossible.
func (j linearJob) step(c linearCall, a linearAnswer) []linearJob {
	after, err := j.carryOut(c, a)
	switch {
	case a.Err == "unknown" && err == "" && !equalJobs(after, j):
		return []linearJob{j, after}
	case a.Err == "unknown":
		return []linearJob{j}
	case err != a.Err:
		return nil
	case err != "":
		return []linearJob{j}
	}
	// looked up after an unknown commit, and heartbeated since
	if c.Op == "claim" && a.State == "running" {
		return []linearJob{after}
	}
	return after.is(a)
}

// carryOut returns j after c, or the refusal. It takes from a only what no caller can predict: tokens, and
// times between call and answer.
func (j linearJob) carryOut(c linearCall, a linearAnswer) (after linearJob, err string) {
	switch c.Op {
	case "enqueue":
		switch {
		case j.state == "" && !a.Existing:
			return linearJob{state: "queued", payload: c.Content, seq: 1, runAt: a.RunAt}, ""
		case j.state != "" && j.payload != c.Content:
			return j, "conflict"
		case j.state != "" && (a.Existing || a.Err == "unknown"):
			return j, ""
		}
		return j, "impossible"
	case "claim":
		return j.claim(c, a)
	case "sweep": // a sweep answers only with reclaimed jobs
		if !j.held() || a.Err == "" && j.lease > a.Before {
			return j, "impossible"
		}
		return j.failed("reclaimed", "", a.RunAt), ""
	case "cancel":
		switch {
		case j.state == "cancelled":
			return j, ""
		case j.final():
			return j, "conflict"
		}
		return j.ended("cancelled", "", "cancelled", 0), ""
	case "retry":
		if !j.final() {
			return j, "conflict"
		}
		j.failures = 0
		return j.ended("", "", "queued", a.RunAt), ""
	case "given back": // by the server, because no client had the answer to the claim
		if last := len(j.claims) - 1; j.held() && (j.claims[last].token == "?" ||
			slices.Contains(c.Tokens, j.claims[last].token)) {
			return j.ended("release", "", "queued", 0), ""
		}
		return j, "impossible"
	case "get":
		if j.state == "" {
			return j, "none"
		}
		return j, ""
	}
	return j.owner(c, a)
}

// linearGroup is how much older than a call the clock reading of its transaction may be: a group commit
// accepts calls for 8 ms after its reading.
const linearGroup = linearSpeed * 10_000 // microseconds

// claim checks that a job that is ready all the time between call and answer is claimed, and that a job that
// is not ready is not claimed.
func (j linearJob) claim(c linearCall, a linearAnswer) (after linearJob, err string) {
	switch {
	case a.Err == "unknown" && j.state == "queued":
		return j.begin("?", 0), ""
	case a.Err == "none" && j.state == "queued" && (j.runAt == 0 || j.runAt > c.After-linearGroup):
		return j, "none"
	case j.state != "queued":
		return j, "none"
	case j.runAt > a.Before:
		return j, "impossible"
	}
	if a.State == "running" {
		return j.begin(a.Token, 0), ""
	}
	return j.begin(a.Token, a.Lease), ""
}

// owner applies a command that presents a token.
func (j linearJob) owner(c linearCall, a linearAnswer) (after linearJob, err string) {
	i := slices.IndexFunc(j.claims, func(claim linearClaim) bool { return claim.token == c.Token })
	switch {
	case i < 0:
		return j, "lost"
	case j.claims[i].end == "":
	case j.claims[i].end == "cancelled" && i == len(j.claims)-1:
		return j, "cancelled"
	case j.claims[i].end == "reclaimed" || j.claims[i].end == "cancelled":
		return j, "lost"
	case j.claims[i].end == c.Op && j.claims[i].with == c.Content:
		return j, "" // sent again
	default:
		return j, "conflict"
	}
	switch c.Op {
	case "heartbeat":
		j.state, j.lease, j.seq = "running", a.Lease, j.seq+1
		return j, ""
	case "succeed":
		return j.ended(c.Op, c.Content, "succeeded", 0), ""
	case "fail":
		return j.failed(c.Op, c.Content, a.RunAt), ""
	case "release":
		return j.ended(c.Op, c.Content, "queued", a.RunAt), ""
	}
	return j, "impossible"
}

func equalJobs(a, b linearJob) bool {
	return a.state == b.state && a.payload == b.payload && a.seq == b.seq && a.failures == b.failures &&
		a.runAt == b.runAt &&
		a.lease == b.lease && slices.Equal(a.claims, b.claims)
}

var linearModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{linearJob{}} },
	Step: func(state, input, output any) (next []any) {
		for _, j := range state.(linearJob).step(input.(linearCall), output.(linearAnswer)) {
			next = append(next, j)
		}
		return next
	},
	Equal: func(a, b any) bool { return equalJobs(a.(linearJob), b.(linearJob)) },
	Hash:  func(a any) uint64 { return uint64(a.(linearJob).seq) },
}).ToModel()

// checkLinear returns why the history of one job is not linearizable, or "".
func checkLinear(ops []porcupine.Operation) string {
	// no time limit: running out of time would prove nothing
	result, info := porcupine.CheckOperationsVerbose(linearModel, ops, 0)
	if result == porcupine.Ok {
		return ""
	}
	var longest []porcupine.Operation
	for _, some := range info.PartialLinearizationsOperations()[0] {
		if len(some) > len(longest) {
			longest = some
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: of %d calls, %d in a row can be explained, the last of them\n", result, len(ops),
		len(longest))
	for _, o := range longest[max(0, len(longest)-12):] {
		text.WriteString(describe(o))
	}
	text.WriteString("and none of these can come next\n")
	rest := slices.DeleteFunc(slices.Clone(ops), func(o porcupine.Operation) bool {
		return slices.ContainsFunc(longest, func(l porcupine.Operation) bool {
			return l.Call == o.Call &&
				l.Metadata == o.Metadata
		})
	})
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range rest[:min(12, len(rest))] {
		text.WriteString(describe(o))
	}
	return text.String()
}

func describe(o porcupine.Operation) string {
	c, a := o.Input.(linearCall), o.Output.(linearAnswer)
	asked := strings.Join(strings.Fields(c.Op+" "+c.Token+" "+c.Content), " ")
	if a.Err != "" {
		return fmt.Sprintf("  %s: %s, after %d: %s, before %d\n", o.Metadata, asked, c.After, a.Err, a.Before)
	}
	return fmt.Sprintf(
		"  %s: %s, after %d: %s seq %d attempt %d failures %d token %q run_at %d lease %d, before %d\n", o.Metadata,
		asked, c.After,
		a.State, a.Seq, a.Attempt, a.Failures, a.Token, a.RunAt, a.Lease, a.Before)
}
