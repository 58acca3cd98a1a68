package commands_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// FuzzDecideEvolve applies random commands to a job, three bytes each: Evolve folds everything that Decide
// allows, and the invariants hold after each step.
func FuzzDecideEvolve(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 10, 2, 0, 0})                   // claim, heartbeat, succeed
	f.Add([]byte{0, 0, 0, 5, 0, 200, 0, 0, 0, 5, 0, 255})       // claimed and reclaimed
	f.Add([]byte{0, 7, 0, 3, 1, 9, 0, 0, 99, 4, 3, 9, 7, 0, 0}) // failed, snoozed, retried
	f.Add([]byte{6, 0, 0, 7, 0, 0, 8, 2, 3, 9, 0, 0, 0, 0, 0})  // cancelled, retried, rescheduled, erased
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		first := script[0]
		s := newPureJob(t, func(b *commands.Enqueue) {
			b.MaxAttempts = 1 + int(first)%4
			b.MaxRuntime = time.Duration(first%3) * time.Minute
		})
		tokens := 0
		for ; len(script) >= 3; script = script[3:] {
			what, how, wait := script[0], script[1], script[2]
			s.wait(time.Duration(wait) * time.Second)
			if wait > 250 {
				s.wait(-time.Hour) // a clock may be set back
			}
			token := fmt.Sprint("T", tokens-int(how)/64)
			before, now := s.job, s.now
			var c commands.Action
			switch what % 10 {
			case 0:
				tokens++
				c = commands.Claim{Token: fmt.Sprint("T", tokens), Worker: worker("w"),
					Lease: time.Duration(1+how) * time.Second, MaxRuntime: time.Duration(how%2) * time.Minute}
			case 1:
				c = commands.Heartbeat{Token: token, Lease: time.Duration(1+how) * time.Second,
					Progress: ref(float64(how) / 255)}
			case 2:
				c = commands.Succeed{Token: token, Result: [][]byte{nil, {}, {how}}[how%3]}
			case 3:
				c = commands.Fail{Token: token, RetryIn: []*time.Duration{nil, ref(time.Duration(0)),
					ref(time.Minute)}[how%3], NoRetry: how%5 == 0}
			case 4:
				c = commands.Release{Token: token, Snooze: how%2 == 0, Delay: time.Duration(how%3) * time.Minute}
			case 5:
				c = commands.Reclaim{Token: token, LeaseUntil: s.job.LeaseUntil}
			case 6:
				c = commands.Cancel{Reason: "fuzz"}
			case 7:
				c = commands.Retry{}
			case 8:
				c = commands.Reschedule{RunAt: []*time.Time{nil, ref(now.Add(-time.Hour)),
					ref(now.Add(time.Minute))}[how%3], Priority: []*int{nil, ref(int(how) % 100)}[how%2]}
			case 9:
				if s.job.State.Final() {
					s.apply(t, commands.Erase{Reason: "asked for"})
				}
				continue
			}
			body, err := s.try(c)
			if err != nil {
				if errors.Is(err, projection.ErrIllegal) || body != nil {
					t.Fatalf("Decide allows what Evolve does not: %T on %+v: %v", c, before, err)
				}
				if s.job.Seq != before.Seq || s.job.State != before.State {
					t.Fatalf("%T was refused and changed the job: %+v, before %+v", c, s.job, before)
				}
				late(t, s, c)
				continue
			}
			invariants(t, before, s.job, body, c, now)
		}
	})
}

// late asks for the answer to an owner's command whose token is not live. It must not panic and must not
// change the job.
func late(t *testing.T, s *pureJob, c commands.Action) {
	owner, ok := c.(commands.OwnerCommand)
	if !ok {
		return
	}
	past := s.past(owner)
	f, err := commands.DecideStale(s.job, past, owner, s.now)
	var refused *commands.RefusedError
	switch {
	case past.Refused && f.Body != nil:
		t.Fatalf("refused twice: %+v", f.Body)
	case f.Body != nil && !errors.As(err, &refused):
		t.Fatalf("%+v with %v", f.Body, err)
	case err == nil && (past.Ending == nil || f.Body != nil):
		t.Fatalf("a first answer that was never given: %+v", past)
	}
	if f.Body == nil {
		return
	}
	before := s.job
	if err := s.record(f); err != nil {
		t.Fatal(err)
	}
	if s.job.Seq != before.Seq || s.job.State != before.State || s.job.Token != before.Token {
		t.Fatalf("a refusal changed the job: %+v", s.job)
	}
}

func invariants(t *testing.T, before, after projection.Job, body event.Body, c commands.Action,
	now time.Time) {
	t.Helper()
	held := after.State.Held()
	_, claim := c.(commands.Claim)
	_, retry := c.(commands.Retry)
	for what, ok := range map[string]bool{
		"there is an event":               body != nil,
		"seq grows by one":                after.Seq == before.Seq+1,
		"attempt grows with a claim only": after.Attempt == before.Attempt+map[bool]int{true: 1}[claim],
		"a token only while held":         (after.Token != "") == held,
		"a lease only while held":         after.LeaseUntil.IsZero() != held,
		"an end only while held":          after.EndBy.IsZero() || held,
		"a worker while held":             !held || after.Worker != (event.Worker{}),
		"queued without a worker": after.State != event.Queued || after.Worker == (event.Worker{}) &&
			after.ClaimedAt.IsZero() && after.Progress == nil,
		"finished_at only once ended":         after.FinishedAt.IsZero() != after.State.Final(),
		"failures up to max_attempts":         after.Failures <= after.MaxAttempts,
		"ended at max_attempts":               after.Failures < after.MaxAttempts || after.State.Final(),
		"failures start at zero with a retry": !retry || after.Failures == 0 && after.Snoozes == 0,
		"no lease beyond the max runtime": after.EndBy.IsZero() ||
			!after.LeaseUntil.After(after.EndBy.Add(15*time.Second)),
		"snoozes are bounded":    after.Snoozes <= commands.MaxSnoozes,
		"no claim before run_at": !claim || !before.RunAt.After(now),
		"the request never changes": after.Queue == before.Queue &&
			after.MaxAttempts == before.MaxAttempts && after.ID == before.ID && after.N == before.N &&
			after.MaxRuntime == before.MaxRuntime,
		"whole microseconds": after.RunAt.Equal(after.RunAt.Truncate(time.Microsecond)) &&
			after.LeaseUntil.Equal(after.LeaseUntil.Truncate(time.Microsecond)),
		"an erased job is never run again": !after.Erased || after.State.Final(),
		"success leaves no error":          after.State != event.SucceededState || after.ErrorCode == "",
		"a failed job has an error code":   after.State != event.FailedState || after.ErrorCode != "",
		"an ending ends its claim":         !body.Kind().EndsClaim() || !held,
	} {
		if !ok {
			t.Fatalf("%s: not true after %T %+v\nbefore %+v\nafter  %+v", what, c, c, before, after)
		}
	}
}
