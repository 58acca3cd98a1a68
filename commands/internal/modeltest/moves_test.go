package modeltest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
)

// sure makes a call until its outcome is known. The commit of the first attempt may fail; the same call is
// then repeated. carriedOut updates the model if the first attempt was durable without an answer.
func (m *model) sure(call func() error, carriedOut func()) error {
	v := rapid.SampledFrom([]commandstest.CommitOutcome{commandstest.Acknowledged, commandstest.Acknowledged,
		commandstest.Acknowledged,
		commandstest.Acknowledged, commandstest.Acknowledged, commandstest.Acknowledged, commandstest.RolledBack,
		commandstest.Unacknowledged}).Draw(m.rt, "commit")
	m.commits.Once(v)
	err := call()
	m.commits.AcknowledgeAll()
	if !errors.Is(err, ledger.ErrUnknown) {
		return err
	}
	if v == commandstest.Unacknowledged {
		carriedOut()
	}
	return call()
}

func (m *model) job() *modelJob {
	if len(m.jobs) == 0 {
		m.rt.Skip("this step needs a job, and there is none yet")
	}
	return m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(m.rt, "job")]
}

func (m *model) request() commands.ClaimRequest {
	r := commands.ClaimRequest{
		Queues:       rapid.SliceOfNDistinct(rapid.SampledFrom(modelQueues), 1, 2, rapid.ID).Draw(m.rt, "queues"),
		Version:      rapid.SampledFrom([]string{"", "v2"}).Draw(m.rt, "version"),
		Capabilities: rapid.SampledFrom([][]string{nil, {"gpu", "ssd"}}).Draw(m.rt, "capabilities"),
		Worker:       worker(rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(m.rt, "worker")),
		Lease:        time.Duration(rapid.IntRange(1, 60).Draw(m.rt, "lease")) * time.Second,
		Limit:        rapid.IntRange(1, 3).Draw(m.rt, "limit"),
	}
	if rapid.Bool().Draw(m.rt, "own tokens") {
		for range r.Limit {
			m.minted++
			r.Tokens = append(r.Tokens, id(2_000_000+m.minted))
		}
		m.asked = append(m.asked, r)
	}
	return r
}

// claimAgain sends an earlier claim with tokens of the caller's making again. While some of them live, the
// answer is these claims. A token that a job had before is not given for it a second time.
func (m *model) claimAgain() {
	if len(m.asked) == 0 {
		m.rt.Skip("this step needs a claim with its own tokens")
	}
	r := m.asked[max(0, len(m.asked)-1-rapid.IntRange(0, 3).Draw(m.rt, "age"))]
	live := make(map[string]*modelJob)
	for _, j := range m.jobs {
		if c := j.live(); c != nil && slices.Contains(r.Tokens, c.token) && c.worker == r.Worker.Name &&
			c.boot == r.Worker.Boot {
			live[c.token] = j
		}
	}
	if len(live) > 0 {
		got, err := m.Claim(m.T.Context(), r)
		if err != nil || len(got) != len(live) {
			m.rt.Fatalf("claim again: %d jobs, %v, want the %d that it got", len(got), err, len(live))
		}
		for _, g := range got {
			j := live[g.Token]
			if j == nil || j.id != string(g.ID) || !j.erased && string(g.Payload) != j.payload {
				m.rt.Fatalf("claim again: got %s with %s", g.ID, g.Token)
			}
			m.check(j, g)
		}
		return
	}
	for i, j := range m.next(r) {
		if slices.ContainsFunc(j.claims, func(c *modelClaim) bool { return c.token == r.Tokens[i] }) {
			if _, err := m.Claim(m.T.Context(), r); !errors.Is(err, commands.ErrConflict) {
				m.rt.Fatalf("claim of %s with a token that it had before: %v", j.id, err)
			}
			return
		}
	}
	m.claim(r)
}

func (m *model) claimAny() { m.claim(m.request()) }

func (m *model) claim(r commands.ClaimRequest) {
	var got []projection.Job
	err := m.sure(func() (err error) {
		got, err = m.Claim(m.T.Context(), r)
		return err
	}, func() {
		if want := m.next(r); len(want) > 0 {
			m.rt.Fatalf("%d jobs were claimed, and the claimer did not find its own tokens", len(want))
		}
	})
	if err != nil {
		m.rt.Fatalf("claim: %v", err)
	}
	m.claimed(r, got)
}

// claimed compares the jobs that a claim returned with those it should return.
func (m *model) claimed(r commands.ClaimRequest, got []projection.Job) {
	want := m.next(r)
	if len(got) != len(want) {
		m.rt.Fatalf("claim: %d jobs, want %d", len(got), len(want))
	}
	byID := make(map[event.JobID]projection.Job)
	for _, g := range got {
		byID[g.ID] = g
	}
	for i, j := range want {
		g, ok := byID[event.JobID(j.id)] // after an unknown commit they are looked up, in another order
		if !ok || string(g.Payload) != j.payload {
			m.rt.Fatalf("claim %d: got %s, want %s with the payload %q", i, got[i].ID, j.id, j.payload)
		}
		if r.Tokens != nil && g.Token != r.Tokens[i] {
			m.rt.Fatalf("claim %d: got the token %s, want %s", i, g.Token, r.Tokens[i])
		}
		m.give(j, r, g.Token)
		m.check(j, g)
	}
}

// ask is one command on one job.
type ask struct {
	job     *modelJob
	command commands.Command
}

// any draws any command: an owner's, with any token that the job ever had or with another job's, or an
// operator's.
func (m *model) any() ask {
	j := m.job()
	if rapid.IntRange(0, 3).Draw(m.rt, "operator") == 0 {
		return ask{j, m.operators(j)}
	}
	token := "T?"
	if n := len(j.claims); n > 0 {
		token = j.claims[max(0, n-1-rapid.IntRange(0, 3).Draw(m.rt, "stale"))].token
	}
	if other := m.job(); rapid.IntRange(0, 9).Draw(m.rt, "foreign") == 0 && other != j && len(other.claims) > 0 {
		token = other.claims[len(other.claims)-1].token
	}
	owner := rapid.SampledFrom([]string{"", "", "", "w1"}).Draw(m.rt, "owner")
	switch rapid.IntRange(0, 6).Draw(m.rt, "command") {
	case 2:
		return ask{j, commands.Succeed{Token: token, Owner: owner,
			Result: rapid.SampledFrom([][]byte{nil, {}, []byte("r")}).Draw(m.rt, "result")}}
	case 3:
		wait := rapid.SampledFrom([]*time.Duration{nil, new(time.Duration(0)), new(5 * time.Second)}).Draw(m.rt,
			"retry_in")
		return ask{j, commands.Fail{Token: token, Owner: owner, Code: rapid.SampledFrom([]string{"", "oom"}).Draw(
			m.rt, "code"),
			Detail:  rapid.SampledFrom([]string{"", "d"}).Draw(m.rt, "detail"),
			Signal:  rapid.SampledFrom([]string{"", "TERM"}).Draw(m.rt, "signal"),
			RetryIn: wait, NoRetry: rapid.IntRange(0, 4).Draw(m.rt, "no_retry") == 0}}
	case 4:
		return ask{j, commands.Release{Token: token, Owner: owner,
			Reason: rapid.SampledFrom([]string{"", "deploy"}).Draw(m.rt, "reason"),
			Delay:  time.Duration(rapid.IntRange(0, 1).Draw(m.rt, "delay")) * 10 * time.Second,
			Snooze: rapid.Bool().Draw(m.rt, "snooze")}}
	case 5:
		process := rapid.SampledFrom([]func(string) event.Worker{successor, worker}).Draw(m.rt, "process")
		name := rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(m.rt, "worker")
		return ask{j, commands.TakeOver{Token: token, Owner: owner, Process: process(name),
			Lease: time.Duration(rapid.IntRange(1, 60).Draw(m.rt, "lease")) * time.Second}}
	case 6:
		return ask{j, commands.ReportStop{Token: token,
			Signal: rapid.SampledFrom([]string{"", "TERM"}).Draw(m.rt, "signal")}}
	}
	return ask{j, commands.Heartbeat{Token: token, Owner: owner,
		Lease: time.Duration(rapid.IntRange(1, 60).Draw(m.rt, "lease")) * time.Second}}
}

func (m *model) retry() commands.Retry {
	return commands.Retry{Now: rapid.IntRange(0, 3).Draw(m.rt, "now") == 3,
		NotSucceeded: rapid.IntRange(0, 3).Draw(m.rt, "not_succeeded") == 3,
		NotDependent: rapid.IntRange(0, 3).Draw(m.rt, "not_dependent") == 3,
		Alone:        rapid.IntRange(0, 3).Draw(m.rt, "alone") == 3}
}

func (m *model) operators(j *modelJob) commands.Command {
	switch rapid.IntRange(0, 4).Draw(m.rt, "command") {
	case 0:
		return commands.Cancel{}
	case 4:
		return commands.Unblock{}
	case 1:
		return m.retry()
	case 2:
		return commands.Erase{}
	}
	var r commands.Reschedule
	if rapid.Bool().Draw(m.rt, "what") {
		r.Priority = new(rapid.IntRange(-1, 1).Draw(m.rt, "priority"))
	}
	if rapid.Bool().Draw(m.rt, "when") {
		r.RunAt = new(m.Now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(m.rt, "run_at")) * 10 * time.Second))
	}
	return r
}

// one applies any command.
func (m *model) one() { m.carry(m.any()) }

// lose continues with a job whose last claim is live or was lost: it is cancelled, retried and claimed again,
// and the end of the command of a lost claim is reported, the last one or an older one. Random commands alone
// hardly ever occur in this order.
func (m *model) lose() {
	var fit []*modelJob
	for _, j := range m.jobs {
		if n := len(j.claims); n > 0 && (j.live() != nil || j.claims[n-1].lost() && !j.erased) {
			fit = append(fit, j)
		}
	}
	if len(fit) == 0 {
		m.rt.Skip("this step needs a job that is or was claimed")
	}
	j := rapid.SampledFrom(fit).Draw(m.rt, "lost")
	for range rapid.IntRange(1, 8).Draw(m.rt, "steps") {
		m.loseOn(j)
	}
}

func (m *model) loseOn(j *modelJob) {
	switch early := rapid.IntRange(0, 3).Draw(m.rt, "early") == 3; {
	case j.live() != nil:
		m.carry(ask{j, commands.Cancel{}})
	case j.final() && !early:
		r := m.retry()
		r.Now = r.Now || len(j.claims) == 1 // so that the first claim's command may still run next to a second one
		m.carry(ask{j, r})
	case !j.final() && !j.runAt.After(m.Now) && len(j.claims) < 3 && !early:
		m.claimFitting(j)
	default:
		m.carry(ask{j, commands.ReportStop{Token: m.lostClaim(j).token}})
	}
}

// lostClaim returns the oldest claim of j that was lost and whose end has not been reported, or else any lost
// claim.
func (m *model) lostClaim(j *modelJob) *modelClaim {
	for _, c := range j.claims {
		if c.lost() && !c.stopped && rapid.Bool().Draw(m.rt, "oldest") {
			return c
		}
	}
	return j.claims[rapid.IntRange(0, len(j.claims)-1).Draw(m.rt, "claim")]
}

// claimFitting claims as a worker that may take j.
func (m *model) claimFitting(j *modelJob) {
	m.claim(commands.ClaimRequest{Queues: []string{j.queue}, Version: j.version, Capabilities: j.requires,
		Worker: worker("w1"), Lease: time.Minute, Limit: 3})
}

// carry applies a command by the job's id.
func (m *model) carry(a ask) {
	var got projection.Job
	err := m.sure(func() (err error) {
		got, err = m.Apply(m.T.Context(), "cli:test", event.JobID(a.job.id), a.command)
		return err
	}, func() { m.judge(a.job, a.command) })
	m.answered(a, got, err, true)
}

// steps returns commands on copies of their jobs from any earlier time.
func (m *model) steps() (asked []ask, steps []commands.Op) {
	for range rapid.IntRange(1, 4).Draw(m.rt, "steps") {
		a := m.any()
		held := a.job.copies[rapid.IntRange(0, len(a.job.copies)-1).Draw(m.rt, "copy")]
		asked, steps = append(asked, a), append(steps, commands.Op{Job: held, Command: a.command})
	}
	return asked, steps
}

// several applies commands in one transaction.
func (m *model) several() {
	asked, steps := m.steps()
	var out []commands.Result
	err := m.sure(func() (err error) {
		out, err = m.ApplyBatch(m.T.Context(), "cli:test", steps)
		return err
	}, func() { m.judgeAll(asked) })
	if err != nil {
		m.rt.Fatalf("all: %v", err)
	}
	m.allAnswered(asked, out)
}

// turn applies commands and then claims, in one transaction.
func (m *model) turn() {
	asked, steps := m.steps()
	r := m.request()
	var out []commands.Result
	var got []projection.Job
	err := m.sure(func() (err error) {
		out, got, err = m.ApplyAndClaim(m.T.Context(), "cli:test", steps, r)
		return err
	}, func() {
		m.judgeAll(asked)
		if want := m.next(r); len(want) > 0 {
			m.rt.Fatalf("%d jobs were claimed, and the claimer did not find its own tokens", len(want))
		}
	})
	if err != nil {
		m.rt.Fatalf("turn: %v", err)
	}
	m.allAnswered(asked, out)
	m.claimed(r, got)
}

func (m *model) judgeAll(asked []ask) {
	for _, a := range asked {
		m.judge(a.job, a.command)
	}
}

func (m *model) allAnswered(asked []ask, out []commands.Result) {
	last := make(map[*modelJob]int)
	for i, a := range asked {
		last[a.job] = i
	}
	for i, a := range asked {
		m.answered(a, out[i].Job, out[i].Err, last[a.job] == i)
	}
}

// answered compares the answer to a command, and the job if the answer has it.
func (m *model) answered(a ask, got projection.Job, err error, now bool) {
	m.rt.Helper()
	before := len(m.ats)
	want := m.judge(a.job, a.command)
	if !errors.Is(err, want) || want == nil && err != nil {
		m.rt.Fatalf("%T %+v of job %s, which is now %s: got %v, want %v", a.command, a.command, a.job.id,
			a.job.state, err, want)
	}
	var refused *commands.RefusedError
	if len(m.ats) > before && want != nil && !errors.As(err, &refused) {
		m.rt.Fatalf("%T of job %s: got %v, want a RefusedError", a.command, a.job.id, err)
	}
	if want == nil && now {
		m.check(a.job, got)
	}
}

func (m *model) sweepAll() {
	m.commits.Once(rapid.SampledFrom([]commandstest.CommitOutcome{commandstest.Acknowledged,
		commandstest.Acknowledged,
		commandstest.RolledBack, commandstest.Unacknowledged}).Draw(m.rt, "commit"))
	w := commands.Sweeper{Service: m.Service, Actor: "sweeper:test", Grace: new(time.Duration)}
	_, err := w.Sweep(m.T.Context())
	m.commits.AcknowledgeAll()
	if errors.Is(err, ledger.ErrUnknown) {
		_, err = w.Sweep(m.T.Context())
	}
	if err != nil {
		m.rt.Fatalf("sweep: %v", err)
	}
	for _, j := range m.jobs {
		if j.live() != nil && !j.lease.After(m.Now) {
			m.stamp()
			wait := j.backoff(j.failures + 1)
			if endless := !j.endBy.IsZero() && !j.beat.Before(j.endBy); j.failures == 0 && !endless {
				wait = 0
			}
			j.fail("reclaimed", nil, m.Now, wait, false)
			m.propagate()
		}
	}
}

func (m *model) pauseAny() {
	name, pause := rapid.SampledFrom(modelQueues).Draw(m.rt, "queue"), rapid.Bool().Draw(m.rt, "pause")
	do := m.Resume
	if pause {
		do = m.Pause
	}
	judge := func() bool {
		changes := m.paused[name] != pause
		if m.paused[name] = pause; changes {
			m.stamp()
		}
		return changes
	}
	var changed bool
	err := m.sure(func() (err error) {
		changed, err = do(m.T.Context(), "cli:test", name, "")
		return err
	}, func() { judge() })
	if want := judge(); err != nil || changed != want {
		m.rt.Fatalf("pause %s %t: %t, %v", name, pause, changed, err)
	}
}

// setDefaults sets what the jobs of a queue get from now on that set nothing themselves.
func (m *model) setDefaults() {
	name := rapid.SampledFrom(modelQueues).Draw(m.rt, "queue")
	to := defaults.Spec{MaxAttempts: rapid.SampledFrom([]int{0, 2}).Draw(m.rt, "max_attempts"),
		MaxRuntime: time.Duration(rapid.IntRange(0, 1).Draw(m.rt, "runtime")) * 20 * time.Second,
		Backoff: rapid.SampledFrom([]event.Backoff{{}, {Min: 5 * time.Second, Max: 20 * time.Second, Factor: 3}}).
			Draw(m.rt, "backoff")}
	judge := func() bool {
		changes := m.given[name] != to
		if m.given[name] = to; changes {
			m.stamp()
		}
		return changes
	}
	var changed bool
	err := m.sure(func() (err error) {
		changed, err = m.SetDefaults(m.T.Context(), "cli:test", name, to, "")
		return err
	}, func() { judge() })
	if want := judge(); err != nil || changed != want {
		m.rt.Fatalf("defaults of %s %+v: %t, %v", name, to, changed, err)
	}
}

// check compares the ledger with the model.
func (m *model) check(j *modelJob, got projection.Job) {
	m.rt.Helper()
	token := ""
	if c := j.live(); c != nil {
		token = c.token
		if got.Worker != (event.Worker{Name: c.worker, Boot: c.boot}) {
			m.rt.Fatalf("%s is held by %+v, want process %s of %s", j.id, got.Worker, c.boot, c.worker)
		}
	}
	is := fmt.Sprintln(got.ID, got.State, got.Seq, got.Queue, got.Priority, got.Key, got.Version, got.Requires,
		got.Attempt, got.Failures, got.Snoozes, got.Token,
		got.LeaseUntil.UnixMicro(), got.EndBy.UnixMicro(), got.Erased, got.MaxAttempts, got.MaxRuntime, got.Backoff,
		got.UniqueWhile, got.KeyFree)
	want := fmt.Sprintln(j.id, j.state, j.seq, j.queue, j.priority, j.key, j.version, j.requires, j.attempt,
		j.failures, j.snoozes, token,
		j.lease.UnixMicro(), j.endBy.UnixMicro(), j.erased, j.max, j.runtime, j.policy, j.while, j.keyFree)
	if is != want {
		m.rt.Fatalf("got\n%swant\n%s", is, want)
	}
	if (j.state == "queued" || j.state == "blocked") && !got.RunAt.Equal(j.runAt) {
		m.rt.Fatalf("%s is to run at %s, want %s", j.id, got.RunAt, j.runAt)
	}
	j.copies = append(j.copies, got)
}
