package commands_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

func TestHeartbeatExtendsTheLease(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w")
	if !j.LeaseUntil.Equal(q.Now.Add(time.Minute)) || j.State != event.ClaimedState {
		t.Errorf("claimed: %+v", j)
	}
	for range 5 {
		q.Now = q.Now.Add(20 * time.Second)
		if j = q.do(j, beat(j.Token)); !j.LeaseUntil.Equal(q.Now.Add(time.Minute)) || j.State != event.Running ||
			!j.HeartbeatAt.Equal(q.Now) {
			t.Errorf("after a heartbeat: %+v", j)
		}
	}
	j = q.do(j, commands.Heartbeat{Token: j.Token, Lease: time.Second, Progress: ref(0.25), Note: "a quarter"})
	if !j.LeaseUntil.Equal(q.Now.Add(time.Second)) || *j.Progress != 0.25 || j.Note != "a quarter" {
		t.Errorf("a shorter lease is a shorter lease: %+v", j)
	}
	if j = q.do(j, beat(j.Token)); *j.Progress != 0.25 || j.Note != "a quarter" {
		t.Errorf("a heartbeat that says nothing keeps what was said: %+v", j)
	}
}

func TestLeaseEndsWithTheMaxRuntime(t *testing.T) {
	for _, test := range []struct {
		job, worker, want time.Duration // the limits on the run time
	}{
		{time.Minute, 0, time.Minute},
		{0, time.Minute, time.Minute},
		{time.Minute, time.Hour, time.Minute},
		{time.Hour, time.Minute, time.Minute},
	} {
		q := newQueue(t)
		q.enqueue(commands.Enqueue{MaxRuntime: test.job})
		j := q.claimOne("w", func(r *commands.ClaimRequest) { r.MaxRuntime, r.Lease = test.worker, time.Hour })
		begin, last := q.Now, q.Now.Add(test.want+15*time.Second)
		if !j.EndBy.Equal(begin.Add(test.want)) || !j.LeaseUntil.Equal(last) {
			t.Errorf("%+v: claimed until %s, to end by %s", test, j.LeaseUntil, j.EndBy)
		}
		for range 10 {
			q.Now = q.Now.Add(10 * time.Second)
			if j = q.do(j, beat(j.Token)); j.LeaseUntil.After(last) {
				t.Fatalf("%+v: a heartbeat at %s reached %s, past %s", test, q.Now, j.LeaseUntil, last)
			}
		}
		swept := q.sweep()
		if len(swept) != 1 || swept[0].ErrorCode != event.MaxRuntime || swept[0].Failures != 1 {
			t.Errorf("%+v: a job that heartbeats for ever: %+v", test, swept)
		}
	}
}

func TestLeaseExpiredTokenLivesUntilReclaimed(t *testing.T) {
	for name, c := range map[string]func(token string) commands.Command{
		"heartbeat": func(token string) commands.Command { return beat(token) },
		"succeed":   func(token string) commands.Command { return commands.Succeed{Token: token} },
		"fail":      func(token string) commands.Command { return commands.Fail{Token: token} },
		"release":   func(token string) commands.Command { return commands.Release{Token: token} },
	} {
		q := newQueue(t)
		q.enqueue(commands.Enqueue{})
		j := q.claimOne("w")
		q.Now = q.Now.Add(24 * time.Hour)
		if got := q.claim("other"); len(got) != 0 {
			t.Errorf("claiming reclaimed: %+v", got)
		}
		q.do(j, c(j.Token))
		if got := q.sweep(); len(got) != 0 {
			t.Errorf("%s came first, and the sweeper took the job: %+v", name, got)
		}
	}
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w")
	q.Now = j.LeaseUntil.Add(-time.Microsecond)
	if got := q.sweep(); len(got) != 0 {
		t.Errorf("reclaimed before the lease's end: %+v", got)
	}
	q.Now = j.LeaseUntil
	if got := q.sweep(); len(got) != 1 {
		t.Errorf("not reclaimed at the lease's end")
	}
	q.refuses(j, beat(j.Token), commands.ErrLeaseLost)
}

func TestAttemptsAreBounded(t *testing.T) {
	for name, fail := range map[string]func(q *queue){
		"reclaimed": func(q *queue) {
			j := q.claimOne("w")
			q.Now = j.LeaseUntil
			q.sweep()
		},
		"failed": func(q *queue) {
			j := q.claimOne("w")
			q.do(j, commands.Fail{Token: j.Token, Code: "oom"})
		},
	} {
		q := newQueue(t)
		j := q.enqueue(commands.Enqueue{MaxAttempts: 3})
		for range 2 { // an operator's retry starts again at 0
			for range 3 {
				q.Now = q.Now.Add(time.Hour)
				fail(q)
			}
			q.Now = q.Now.Add(1000 * time.Hour)
			if got := q.claim("w"); len(got) != 0 {
				t.Fatalf("%s: a fourth attempt: %+v", name, got)
			}
			j = q.do(j, commands.Retry{})
			if j.Failures != 0 || j.FinishedAt != (time.Time{}) || j.ErrorCode != "" {
				t.Errorf("%s: after retry: %+v", name, j)
			}
		}
		if j = q.claimOne("w"); j.Attempt != 7 {
			t.Errorf("%s: attempt %d, want 7: it is never used again", name, j.Attempt)
		}
	}
}

func TestSnoozeHundredthIsFailure(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	j := q.enqueue(commands.Enqueue{MaxAttempts: 1})
	for i := range commands.MaxSnoozes {
		j = q.claimOne("w")
		j = q.do(j, commands.Release{Token: j.Token, Snooze: true})
		if j.State != event.Queued || j.Failures != 0 || j.Snoozes != i+1 || !j.RunAt.After(q.Now) {
			t.Fatalf("snooze %d: %+v", i+1, j)
		}
		q.Now = j.RunAt
	}
	j = q.claimOne("w")
	last := commands.Release{Token: j.Token, Snooze: true, Reason: "still busy"}
	if j = q.do(j, last); j.State != event.FailedState || j.ErrorCode != "snoozed_too_often" ||
		j.ErrorDetail != "still busy" {
		t.Errorf("the 100th: %+v", j)
	}
	if again := q.do(j, last); again.Seq != j.Seq {
		t.Errorf("the 100th, sent again: %+v", again)
	}
}

func TestBackoff(t *testing.T) {
	for n := 1; n <= 70; n++ {
		base := time.Hour
		if n <= 12 {
			base = time.Second << (n - 1)
		}
		least, most := time.Duration(1<<62), time.Duration(0)
		for i := range 2000 {
			job := event.JobID(id(i))
			d := commands.Backoff(job, n, n)
			if again := commands.Backoff(job, n, n); again != d {
				t.Fatalf("dice: %s and %s", d, again)
			}
			least, most = min(least, d), max(most, d)
		}
		if least < base*8/10 || most > base*12/10 {
			t.Errorf("failure %d: %s to %s, want %s ± 20%%", n, least, most, base)
		}
		if least > base*81/100 || most < base*119/100 {
			t.Errorf("failure %d: %s to %s do not spread over %s ± 20%%", n, least, most, base)
		}
	}
	if a, b := commands.Backoff(pureID, 1, 1), commands.Backoff(pureID, 2, 1); a == b {
		t.Errorf("two attempts of a job wait alike: %s", a)
	}
	if got, want := commands.Backoff(pureID, 1, 1), 807600*time.Microsecond; got != want {
		t.Errorf("got %s, want %s: the same for ever, or a replay of an old command differs", got, want)
	}
}

func TestBackoffAfterReclaimBeginsWithTheSecondFailure(t *testing.T) {
	failed, reclaimed := newPureJob(t, nil), newPureJob(t, nil)
	for i := range 4 {
		token := fmt.Sprint("T", i)
		claim := claimed(token)
		failed.apply(t, claim).wait(time.Minute).apply(t, commands.Fail{Token: token})
		reclaimed.apply(t, claim).wait(time.Minute)
		reclaimed.apply(t, commands.Reclaim{Token: token, LeaseUntil: reclaimed.job.LeaseUntil})
		want := failed.job.RunAt
		if i == 0 {
			want = reclaimed.now
		}
		if got := reclaimed.job.RunAt; !got.Equal(want) {
			t.Errorf("failure %d: to run at %s after reclaimed, want %s", i+1, got, want)
		}
		failed.now = failed.job.RunAt
		reclaimed.now, reclaimed.job.RunAt = failed.now, failed.now
	}
}

// The death of a worker is not the fault of its job, however short the job's limits. A job that exceeds its
// run time while its worker still sends heartbeats is at fault.
func TestReclaimReasonOfDeadWorkerAndOfEndlessJob(t *testing.T) {
	const lease = time.Minute
	for name, test := range map[string]struct {
		runtime time.Duration
		beats   []time.Duration // times after the claim
		want    string
		wait    bool // backoff after the first failure
	}{
		"no max runtime":                      {0, nil, event.LeaseExpired, false},
		"killed, max runtime below the lease": {5 * time.Second, nil, event.LeaseExpired, false},
		"killed before the end of a long time": {time.Hour, []time.Duration{20 * time.Second}, event.LeaseExpired,
			false},
		"killed a beat before the end": {time.Minute, []time.Duration{59 * time.Second},
			event.LeaseExpired, false},
		"a beat at the very end": {time.Minute, []time.Duration{time.Minute}, event.MaxRuntime,
			true},
		"endless, max runtime below the lease": {5 * time.Second, []time.Duration{10 * time.Second},
			event.MaxRuntime, true},
		"endless, beats until the lease is cut": {time.Minute, []time.Duration{50 * time.Second, 70 * time.Second},
			event.MaxRuntime, true},
	} {
		s := newPureJob(t, func(e *commands.Enqueue) { e.MaxRuntime = test.runtime })
		begin := s.now
		c := claimed("T")
		c.Lease = lease
		s.apply(t, c)
		for _, d := range test.beats {
			s.now = begin.Add(d)
			s.apply(t, commands.Heartbeat{Token: "T", Lease: lease})
		}
		s.now = begin.Add(2 * time.Hour) // the sweeper looks when every deadline has passed
		s.apply(t, commands.Reclaim{Token: "T", LeaseUntil: s.job.LeaseUntil})
		if s.job.ErrorCode != test.want || s.job.RunAt.After(s.now) != test.wait {
			t.Errorf("%s: reclaimed for %s, to run %s later; want %s", name, s.job.ErrorCode, s.job.RunAt.Sub(s.now),
				test.want)
		}
	}
}
