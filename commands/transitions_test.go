package commands_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("..", "testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Errorf("%s:%d\n got %s\nwant %s", name, i+1, g, w)
		}
	}
	t.Errorf(
		"%s is not what the rules say now; if they were meant to change, run go test with -update and read the "+
			"diff", name)
}

func ref[T any](v T) *T { return &v }

const live = "T1" // the token of every claim in the matrix

func claimed(token string) commands.Claim {
	return commands.Claim{Token: token, Worker: worker("w1"), Lease: time.Minute}
}

func beat(token string) commands.Heartbeat {
	return commands.Heartbeat{Token: token, Lease: time.Minute}
}

func takeOver(name, boot string) commands.TakeOver {
	return commands.TakeOver{Token: live, Lease: time.Minute, Process: event.Worker{Name: name, Boot: boot}}
}

// situation is a job in some state, and the time at which it gets a command.
type situation struct {
	name string
	make func(t testing.TB) *pureJob
}

func situations() []situation {
	after := func(change func(*commands.Enqueue), cs ...commands.Action) func(testing.TB) *pureJob {
		return func(t testing.TB) *pureJob { return newPureJob(t, change).apply(t, cs...).wait(10 * time.Second) }
	}
	limit := func(attempts int, runtime time.Duration) func(*commands.Enqueue) {
		return func(b *commands.Enqueue) { b.MaxAttempts, b.MaxRuntime = attempts, runtime }
	}
	expired := func(make func(testing.TB) *pureJob) func(testing.TB) *pureJob {
		return func(t testing.TB) *pureJob {
			s := make(t)
			s.now = s.job.LeaseUntil
			return s
		}
	}
	return []situation{
		{"queued, ready", after(nil)},
		{"queued, scheduled in 1h", after(func(b *commands.Enqueue) {
			b.RunAt = b.RunAt.Add(time.Hour + 10*time.Second)
		})},
		{"queued again after a failure", func(t testing.TB) *pureJob {
			return after(nil, claimed(live), commands.Fail{Token: live, RetryIn: ref(time.Duration(0))})(t)
		}},
		{"claimed", after(nil, claimed(live))},
		{"claimed, lease over", expired(after(nil, claimed(live)))},
		{"claimed, last attempt, lease over", expired(after(limit(1, 0), claimed(live)))},
		{"claimed, max runtime 5s over", after(limit(5, 5*time.Second), claimed(live))},
		{"claimed, max runtime 5s and lease over", expired(after(limit(5, 5*time.Second), claimed(live)))},
		{"running", after(nil, claimed(live), beat(live))},
		{"running, lease over", expired(after(nil, claimed(live), beat(live)))},
		{"running, last attempt", after(limit(1, 0), claimed(live), beat(live))},
		{"running, last snooze", func(t testing.TB) *pureJob {
			s := after(nil)(t)
			for i := range commands.MaxSnoozes {
				token := fmt.Sprint("S", i)
				s.apply(t, claimed(token), commands.Release{Token: token, Snooze: true, Delay: time.Second}).wait(
					time.Second)
			}
			return s.apply(t, claimed(live), beat(live)).wait(10 * time.Second)
		}},
		{"running, last snooze and last attempt", func(t testing.TB) *pureJob {
			s := after(limit(1, 0))(t)
			for i := range commands.MaxSnoozes {
				token := fmt.Sprint("S", i)
				s.apply(t, claimed(token), commands.Release{Token: token, Snooze: true, Delay: time.Second}).wait(
					time.Second)
			}
			return s.apply(t, claimed(live), beat(live)).wait(10 * time.Second)
		}},
		{"running, max runtime 1h, 59m59s of it gone", func(t testing.TB) *pureJob {
			return after(limit(5, time.Hour), claimed(live), beat(live))(t).wait(time.Hour - 11*time.Second)
		}},
		{"blocked", func(t testing.TB) *pureJob {
			s := after(nil)(t)
			s.job.State = event.Blocked
			return s
		}},
		{"succeeded", after(nil, claimed(live), commands.Succeed{Token: live})},
		{"failed", after(limit(1, 0), claimed(live), commands.Fail{Token: live})},
		{"cancelled", after(nil, commands.Cancel{})},
		{"cancelled while claimed", after(nil, claimed(live), commands.Cancel{})},
		{"succeeded, erased", func(t testing.TB) *pureJob {
			return after(nil, claimed(live), commands.Succeed{Token: live})(t).apply(t,
				commands.Erase{Reason: "asked for"})
		}},
	}
}

type asking struct {
	name string
	make func(*pureJob) commands.Action
}

func askings() []asking {
	always := func(c commands.Action) func(*pureJob) commands.Action {
		return func(*pureJob) commands.Action { return c }
	}
	seen := func(token string, step time.Duration) func(*pureJob) commands.Action {
		return func(s *pureJob) commands.Action {
			return commands.Reclaim{Token: token, LeaseUntil: s.job.LeaseUntil.Add(step)}
		}
	}
	return []asking{
		{"claim", always(claimed("T2"))},
		{"claim, worker's max runtime 30s",
			always(commands.Claim{Token: "T2", Worker: worker("w2"), Lease: time.Hour, MaxRuntime: 30 * time.Second})},
		{"heartbeat", always(beat(live))},
		{"heartbeat, lease 24h", always(commands.Heartbeat{Token: live, Lease: 24 * time.Hour})},
		{"heartbeat as its owner", always(commands.Heartbeat{Token: live, Owner: "w1", Lease: time.Minute})},
		{"heartbeat as another worker", always(commands.Heartbeat{Token: live, Owner: "w2", Lease: time.Minute})},
		{"take over, another process", always(takeOver("w1", "boot-next"))},
		{"take over, the same process", always(takeOver("w1", "boot-w1"))},
		{"take over, another worker", always(takeOver("w2", "boot-w2"))},
		{"succeed", always(commands.Succeed{Token: live})},
		{"succeed, result", always(commands.Succeed{Token: live, Result: []byte("ok"), ExitCode: ref(0)})},
		{"fail", always(commands.Fail{Token: live})},
		{"fail, retry in 5s", always(commands.Fail{Token: live, Code: "oom", RetryIn: ref(5 * time.Second)})},
		{"fail, no retry", always(commands.Fail{Token: live, Code: "oom", NoRetry: true})},
		{"release", always(commands.Release{Token: live})},
		{"release in 1h", always(commands.Release{Token: live, Delay: time.Hour})},
		{"snooze", always(commands.Release{Token: live, Snooze: true})},
		{"snooze for 1h", always(commands.Release{Token: live, Snooze: true, Delay: time.Hour})},
		{"reclaim", seen(live, 0)},
		{"reclaim, another token seen", seen("T0", 0)},
		{"reclaim, another lease end seen", seen(live, -time.Second)},
		{"cancel", always(commands.Cancel{Reason: "wrong"})},
		{"unblock, without a hold", always(commands.Unblock{Reason: "all are there"})},
		{"retry", always(commands.Retry{Reason: "again"})},
		{"retry, command may run for 30s", func(s *pureJob) commands.Action {
			return commands.Retry{}.While(s.now.Add(30 * time.Second))
		}},
		{"retry now, command may run for 30s", func(s *pureJob) commands.Action {
			return commands.Retry{Now: true}.While(s.now.Add(30 * time.Second))
		}},
		{"erase", always(commands.Erase{Reason: "asked for"})},
		{"reschedule in 2h", func(s *pureJob) commands.Action {
			return commands.Reschedule{RunAt: ref(s.now.Add(2 * time.Hour))}
		}},
		{"reschedule into the past", func(s *pureJob) commands.Action {
			return commands.Reschedule{RunAt: ref(s.now.Add(-2 * time.Hour))}
		}},
		{"reschedule, priority 7", always(commands.Reschedule{Priority: ref(7)})},
		{"reschedule to what it is", func(s *pureJob) commands.Action {
			return commands.Reschedule{RunAt: ref(s.job.RunAt), Priority: ref(s.job.Priority)}
		}},
		{"edit, 9 attempts", always(commands.Edit{MaxAttempts: 9, MaxRuntime: time.Hour,
			Requires: []string{"gpu"}})},
		{"edit to what it is", func(s *pureJob) commands.Action {
			return commands.Edit{MaxAttempts: s.job.MaxAttempts, MaxRuntime: s.job.MaxRuntime}
		}},
	}
}

// TestTransitions records every state × command, and the answers to a token that is not live any more.
func TestTransitions(t *testing.T) {
	var out strings.Builder
	out.WriteString(
		`# What comes of each command in each state: the event, the state after it, and what it changes
# (times are from the command; | is as below). Rewritten by: go test ./commands -run TestTransitions -update
`)
	for _, st := range situations() {
		s := st.make(t)
		fmt.Fprintf(&out, "\n%s (attempt %d, failures %d of %d, snoozes %d)\n", st.name, s.job.Attempt,
			s.job.Failures, s.job.MaxAttempts, s.job.Snoozes)
		var lines table
		for _, a := range askings() {
			s := st.make(t)
			before := s.job
			body, err := s.try(a.make(s))
			lines.add(a.name, result(s, before.Seq, body, err))
		}
		out.WriteString(lines.String())
	}
	out.WriteString("\n\n# The answer to an owner's command whose token is not live any more.\n")
	for _, st := range endings() {
		fmt.Fprintf(&out, "\n%s\n", st.name)
		var lines table
		for _, a := range lateAskings() {
			s := st.make(t)
			c := a.make(s).(commands.OwnerCommand)
			if _, err := commands.Decide(s.job, c, s.now); err == nil || err.Error() != "token is not live" {
				t.Fatalf("%s, %s: Decide says %v", st.name, a.name, err)
			}
			f, err := commands.DecideStale(s.job, s.past(c), c, s.now)
			lines.add(a.name, lateResult(t, s, f, err))
		}
		out.WriteString(lines.String())
	}
	out.WriteString(
		"\n\n# What is recorded when the command of the claim with the token T1 is said to have ended.\n\n")
	var lines table
	for _, st := range append(endings(), stops()...) {
		s := st.make(t)
		before := s.job.Seq
		facts, err := s.report(commands.ReportStop{Token: live, Signal: "SIGKILL"})
		lines.add(st.name, stopResult(s, before, facts, err))
	}
	out.WriteString(lines.wide())
	golden(t, "transitions.golden", out.String())
}

// table formats lines of a name and a result; adjacent names with the same result share a line.
type table []struct{ name, result string }

func (t *table) add(name, result string) {
	*t = append(*t, struct{ name, result string }{name, strings.TrimRight(result, " ")})
}

func (t table) String() string { return t.columns(34) }

// wide is table for longer names.
func (t table) wide() string { return t.columns(46) }

func (t table) columns(width int) string {
	var out strings.Builder
	for i, line := range t {
		switch last := i+1 == len(t) || t[i+1].result != line.result; {
		case last:
			fmt.Fprintf(&out, "    %-*s %s\n", width, line.name, line.result)
		default:
			fmt.Fprintf(&out, "    %-*s |\n", width, line.name)
		}
	}
	return out.String()
}

func result(s *pureJob, seq int64, body event.Body, err error) string {
	switch {
	case err != nil:
		return "- " + strings.ReplaceAll(err.Error(), string(pureID), "J")
	case body.Kind() == event.KindErased && s.job.Seq == seq:
	case s.job.Seq != seq+1:
		return fmt.Sprintf("? seq %d after %d", s.job.Seq, seq)
	}
	line := fmt.Sprintf("%-12s %-10s", body.Kind(), s.job.State)
	from := func(what string, at time.Time) {
		if !at.IsZero() {
			line += fmt.Sprintf(" %s %+.1fs", what, at.Sub(s.now).Seconds())
		}
	}
	switch b := body.(type) {
	case *event.Claimed:
		line += fmt.Sprintf(" attempt %d", s.job.Attempt)
		from("lease", b.LeaseUntil)
		from("end by", s.job.EndBy)
	case *event.Heartbeat:
		from("lease", b.LeaseUntil)
	case *event.TakenOver:
		line += " by " + s.job.Worker.Boot
		from("lease", b.LeaseUntil)
	case *event.Succeeded:
		line += fmt.Sprintf(" %d bytes", b.ResultBytes)
	case *event.Failed, *event.Reclaimed:
		line += fmt.Sprintf(" %s, failures %d", s.job.ErrorCode, s.job.Failures)
	case *event.Released:
		line += fmt.Sprintf(" failures %d, snoozes %d", s.job.Failures, s.job.Snoozes)
	case *event.Retried:
		line += fmt.Sprintf(" attempt %d, failures %d, snoozes %d", s.job.Attempt, s.job.Failures, s.job.Snoozes)
	case *event.Rescheduled:
		line += fmt.Sprintf(" priority %d", s.job.Priority)
	}
	if s.job.State == event.Queued {
		from("run", s.job.RunAt)
	}
	return line
}

// endings are the ways in which the claim with the token T1 can have ended.
func endings() []situation {
	done := func(cs ...commands.Action) func(testing.TB) *pureJob {
		return func(t testing.TB) *pureJob {
			return newPureJob(t, nil).apply(t, claimed(live), beat(live)).wait(10*time.Second).apply(t, cs...).wait(
				time.Hour)
		}
	}
	reclaimed := func(t testing.TB) *pureJob {
		s := newPureJob(t, nil).apply(t, claimed(live)).wait(time.Minute)
		return s.apply(t, commands.Reclaim{Token: live, LeaseUntil: s.job.LeaseUntil}).wait(time.Hour)
	}
	refuse := func(make func(testing.TB) *pureJob) func(testing.TB) *pureJob {
		return func(t testing.TB) *pureJob {
			return make(t).refuse(t, beat(live), commands.Succeed{Token: live, Result: []byte("first")},
				commands.Fail{Token: live, Code: "first"}, commands.Release{Token: live, Reason: "first"})
		}
	}
	again := claimed("T2")
	again.Worker = worker("w2")
	result := commands.Succeed{Token: live, Result: []byte("ok"), ExitCode: ref(0)}
	return []situation{
		{"never given to this job, which is queued", func(t testing.TB) *pureJob { return newPureJob(t, nil) }},
		{"never given to this job, which another holds",
			func(t testing.TB) *pureJob { return newPureJob(t, nil).apply(t, again) }},
		{"succeeded without a result", done(commands.Succeed{Token: live})},
		{"succeeded with the result ok", done(result)},
		{"succeeded with the result ok, erased",
			func(t testing.TB) *pureJob { return done(result)(t).apply(t, commands.Erase{Reason: "asked for"}) }},
		{"succeeded, retried by an operator", done(result, commands.Retry{})},
		{"succeeded, retried, claimed again", done(result, commands.Retry{}, again)},
		{"failed", done(commands.Fail{Token: live, Code: "oom", Detail: "killed", Signal: "KILL"})},
		{"failed for good", done(commands.Fail{Token: live, Code: "oom", Detail: "killed", Signal: "KILL",
			NoRetry: true})},
		{"released", done(commands.Release{Token: live, Reason: "deploy"})},
		{"snoozed", done(commands.Release{Token: live, Reason: "deploy", Snooze: true})},
		{"reclaimed", reclaimed},
		{"reclaimed, claimed again", func(t testing.TB) *pureJob { return reclaimed(t).apply(t, again) }},
		{"reclaimed, refused before", refuse(reclaimed)},
		{"cancelled", done(commands.Cancel{})},
		{"cancelled, refused before", refuse(done(commands.Cancel{}))},
		{"cancelled, retried by an operator", done(commands.Cancel{}, commands.Retry{})},
		{"cancelled, retried, claimed again", done(commands.Cancel{}, commands.Retry{}, again)},
	}
}

// stops are further cases for a report that the command of the claim T1 has ended.
func stops() []situation {
	cancelled := func(cs ...commands.Action) func(testing.TB) *pureJob {
		return func(t testing.TB) *pureJob {
			s := newPureJob(t, nil).apply(t, claimed(live)).wait(time.Second).apply(t, commands.Cancel{})
			return s.apply(t, commands.Retry{}.While(s.now.Add(30*time.Second))).wait(time.Second).apply(t, cs...)
		}
	}
	again := claimed("T2")
	again.Worker = worker("w2")
	return []situation{
		{"claimed", func(t testing.TB) *pureJob { return newPureJob(t, nil).apply(t, claimed(live)) }},
		{"cancelled, the retry waits", cancelled()},
		{"cancelled, the retry waited for 30s",
			func(t testing.TB) *pureJob { return cancelled()(t).wait(time.Minute) }},
		{"cancelled, the retry waits, rescheduled", func(t testing.TB) *pureJob {
			s := cancelled()(t)
			return s.apply(t, commands.Reschedule{RunAt: ref(s.now.Add(time.Hour))})
		}},
		{"cancelled, the retry waits, reported before", func(t testing.TB) *pureJob {
			s := cancelled()(t)
			if _, err := s.report(commands.ReportStop{Token: live}); err != nil {
				t.Fatal(err)
			}
			return s
		}},
		{"cancelled, the retry waits, cancelled again", cancelled(commands.Cancel{})},
		{"cancelled, the retry of a later claim waits", func(t testing.TB) *pureJob {
			s := cancelled(commands.Reschedule{RunAt: ref(ledgertest.Epoch)}, again, commands.Cancel{})(t)
			return s.apply(t, commands.Retry{}.While(s.now.Add(30*time.Second)))
		}},
	}
}

// stopResult is the result of a report: the events, and when the job runs.
func stopResult(s *pureJob, seq int64, facts []commands.Fact, err error) string {
	if err != nil {
		return "- " + strings.ReplaceAll(err.Error(), string(pureID), "J")
	}
	var kinds []string
	for _, f := range facts {
		kind := f.Body.Kind().String()
		if b, ok := f.Body.(*event.Stopped); ok {
			kind += " (" + b.Why + ")"
		}
		kinds = append(kinds, kind)
	}
	line := fmt.Sprintf("%-32s %-10s", strings.Join(kinds, ", "), s.job.State)
	if s.job.State == event.Queued {
		line += fmt.Sprintf(" run %+.1fs", s.job.RunAt.Sub(s.now).Seconds())
	}
	if s.job.Seq != seq {
		line += fmt.Sprintf(" seq %+d", s.job.Seq-seq)
	}
	return line
}

func lateAskings() []asking {
	always := func(name string, c commands.Action) asking {
		return asking{name, func(*pureJob) commands.Action { return c }}
	}
	return []asking{
		always("heartbeat", beat(live)),
		always("heartbeat, cannot be ended", commands.Heartbeat{Token: live, Lease: time.Minute,
			CannotEnd: "pid 7 (sudo) belongs to root"}),
		always("take over", takeOver("w1", "boot-next")),
		always("succeed", commands.Succeed{Token: live}),
		always("succeed, result ok", commands.Succeed{Token: live, Result: []byte("ok"), ExitCode: ref(0)}),
		always("succeed, result ok, exit 1", commands.Succeed{Token: live, Result: []byte("ok"), ExitCode: ref(1)}),
		always("succeed, another result", commands.Succeed{Token: live, Result: []byte("no"), ExitCode: ref(0)}),
		always("succeed, result ok, another worker", commands.Succeed{Token: live, Owner: "w2",
			Result:   []byte("ok"),
			ExitCode: ref(0)}),
		always("fail, oom", commands.Fail{Token: live, Code: "oom", Detail: "killed", Signal: "KILL"}),
		always("fail, oom, no retry", commands.Fail{Token: live, Code: "oom", Detail: "killed", Signal: "KILL",
			NoRetry: true}),
		always("fail", commands.Fail{Token: live}),
		always("release, deploy", commands.Release{Token: live, Reason: "deploy"}),
		always("release", commands.Release{Token: live}),
		always("release, deploy, snooze", commands.Release{Token: live, Reason: "deploy", Snooze: true}),
	}
}

func lateResult(t *testing.T, s *pureJob, f commands.Fact, err error) string {
	t.Helper()
	if err == nil && f.Body == nil {
		return "the first answer again"
	}
	recorded := "not recorded"
	if f.Body != nil {
		recorded = "recorded"
		switch body := f.Body.(type) {
		case *event.Refused:
			if body.OfferedSHA256 != "" {
				recorded = "recorded with its digest"
			}
		case *event.Survived:
			recorded = "recorded as survived"
		}
		if err := s.record(f); err != nil {
			t.Errorf("refused does not fold: %v", err)
		}
	}
	sentinel := "?"
	for name, target := range map[string]error{"lease lost": commands.ErrLeaseLost,
		"cancelled": commands.ErrCancelled, "conflict": commands.ErrConflict} {
		if errors.Is(err, target) {
			sentinel = name
		}
	}
	var refused *commands.RefusedError
	var conflict *commands.ConflictError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("%-10s  %-24s  %s", sentinel, recorded, refused.Why)
	case errors.As(err, &conflict):
		return fmt.Sprintf("%-10s  %-24s  %s", sentinel, recorded, conflict.Why)
	}
	return fmt.Sprintf("? %v", err)
}
