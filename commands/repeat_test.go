package commands_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// waysToEnd are commands that end a claim, one for each kind of acknowledgement.
func waysToEnd(token string) []commands.Command {
	code, soon := 3, time.Second
	return []commands.Command{
		commands.Succeed{Token: token},
		commands.Succeed{Token: token, Result: []byte{}},
		commands.Succeed{Token: token, Result: []byte("done"), ExitCode: new(int)},
		commands.Fail{Token: token},
		commands.Fail{Token: token, Code: "smtp", Detail: "refused", ExitCode: &code, RetryIn: &soon},
		commands.Fail{Token: token, Signal: "SIGSEGV", NoRetry: true},
		commands.Release{Token: token},
		commands.Release{Token: token, Reason: "later", Delay: time.Minute},
		commands.Release{Token: token, Reason: "busy", Snooze: true},
	}
}

// An ending that was acknowledged is acknowledged again, whatever operators and other workers did since.
func TestEndingSentAgainGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	for i := range waysToEnd("") {
		q := newQueue(t)
		r := rand.New(rand.NewPCG(28, uint64(i)))
		for round := range 4 {
			j := q.enqueue(commands.Enqueue{ID: id(100*i + round + 1), Payload: []byte("p")})
			a := q.claimOne("a")
			ending := waysToEnd(a.Token)[i]
			q.do(a, ending)
			done := ""
			for range 8 {
				done += " " + q.meddle(r, a.ID)
				before, _ := q.events(j)
				for range 2 {
					if _, err := q.Apply(t.Context(), "worker:a", a.ID, ending); err != nil {
						t.Fatalf("%T %+v, after%s: %v", ending, ending, done, err)
					}
				}
				if after, _ := q.events(j); len(after) != len(before) {
					t.Fatalf("%T %+v, after%s: sent again it wrote %+v", ending, ending, done, after[len(before):])
				}
			}
			q.finish(a.ID)
		}
	}
}

// An erased result keeps its size, and a result of another size is a different one.
func TestEndingOfErasedJobIsComparedByWhatIsLeft(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Payload: []byte("p")})
	a := q.claimOne("a")
	q.do(a, commands.Succeed{Token: a.Token, Result: []byte("done")})
	q.do(a, commands.Erase{Reason: "asked for"})
	q.do(a, commands.Succeed{Token: a.Token, Result: []byte("done")})
	code := 1
	for _, other := range []commands.Command{
		commands.Succeed{Token: a.Token},
		commands.Succeed{Token: a.Token, Result: []byte("done!")},
		commands.Succeed{Token: a.Token, Result: []byte("done"), ExitCode: &code},
		commands.Fail{Token: a.Token},
	} {
		q.refuses(a, other, commands.ErrConflict)
	}
}

// meddle does one thing to the job that can happen after a claim has ended, if it is allowed now.
func (q *queue) meddle(r *rand.Rand, job event.JobID) string {
	q.T.Helper()
	q.Now = q.Now.Add(time.Duration(r.IntN(3)) * time.Hour)
	try := func(c commands.Command) string {
		_, err := q.Apply(q.T.Context(), "cli:test", job, c)
		return fmt.Sprintf("%T(%v)", c, err)
	}
	switch r.IntN(9) {
	case 0:
		return try(commands.Retry{})
	case 1:
		return try(commands.Cancel{})
	case 2:
		return try(commands.Erase{Reason: "asked for"})
	case 3:
		return try(commands.Reschedule{RunAt: &q.Now})
	case 4:
		return try(commands.Succeed{Token: "never given", Result: []byte("done")})
	case 5:
		return fmt.Sprintf("swept %d", len(q.sweep()))
	}
	jobs, err := q.Claim(q.T.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("b"),
		Lease: time.Minute})
	if err != nil {
		q.T.Fatal(err)
	}
	if len(jobs) == 0 {
		return "nothing claimed"
	}
	if r.IntN(3) == 0 {
		return "claimed by b"
	}
	all := waysToEnd(jobs[0].Token)
	return "by b " + try(all[r.IntN(len(all))])
}

// finish ends the job, so that the next one can be claimed.
func (q *queue) finish(id event.JobID) {
	q.T.Helper()
	if !q.fresh(id).State.Final() {
		if _, err := q.Apply(q.T.Context(), "cli:test", id, commands.Cancel{}); err != nil {
			q.T.Fatal(err)
		}
	}
}
