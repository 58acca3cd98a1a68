package simtest

import (
	"fmt"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

var simQueues = []string{"a", "b"}

// simWorker claims jobs, sends heartbeats for them, and ends them in some way. It repeats what was not
// answered.
type simWorker struct {
	lease  time.Duration
	slots  int
	tasks  []*simTask
	asks   time.Time // when it looks for work again
	sweeps *simSweeper
	said   bool // its start was recorded
}

// simTask is one job of a worker.
type simTask struct {
	job    projection.Job
	token  string
	beats  time.Time        // the next heartbeat
	ends   time.Time        // when the work is done
	end    commands.Command // the command that ends it; the same when it is repeated
	zombie bool             // it continues whatever the answer is
}

func newSimWorker(s *sim) *simWorker {
	w := &simWorker{lease: oneOf(s.rng, 10*time.Second, 30*time.Second, time.Minute, 3*time.Minute),
		slots: 1 + s.rng.IntN(3)}
	if s.chance(0.7) {
		w.sweeps = &simSweeper{}
	}
	return w
}

func (w *simWorker) reset() {
	w.tasks, w.said, w.asks = nil, false, time.Time{}
	if w.sweeps != nil {
		w.sweeps.reset()
	}
}

func (w *simWorker) act(p *process) time.Time {
	if !w.said {
		_, err := call(p, "start", nil, func() (bool, error) {
			return true, p.service.WorkerStarted(p.t.Context(), p.worker(), simQueues, nil)
		})
		w.said = err == nil
	}
	if w.sweeps != nil && !time.Now().Before(w.sweeps.next) {
		w.sweeps.act(p)
	}
	w.write(p)
	next := time.Now().Add(time.Minute)
	if w.sweeps != nil {
		next = earlier(next, w.sweeps.next)
	}
	if len(w.tasks) < w.slots {
		next = earlier(next, w.asks)
	}
	for _, t := range w.tasks {
		next = earlier(next, earlier(t.beats, t.ends))
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// write sends the commands that are due, and claims more jobs if there is a free slot.
func (w *simWorker) write(p *process) {
	now := time.Now()
	var steps []commands.Op
	var due []*simTask
	var shows []string
	for _, t := range w.tasks {
		var c commands.Command
		switch {
		case !now.Before(t.ends):
			c = t.end
		case !now.Before(t.beats):
			c = commands.Heartbeat{Token: t.token, Lease: w.lease}
		default:
			continue
		}
		steps, due, shows = append(steps, commands.Op{Job: t.job, Command: c}), append(due, t),
			append(shows, t.token)
	}
	free, ready := w.slots-len(w.tasks), false
	if free > 0 && !now.Before(w.asks) {
		ready = w.look(p)
	}
	if !ready && !p.chance(0.1) {
		free = 0
	}
	if len(steps) == 0 && free == 0 {
		return
	}
	outcomes, claimed, err := w.send(p, shows, steps, free)
	switch {
	case unknown(err):
		for _, t := range due { // again, soon
			again := time.Now().Add(p.span(10*time.Millisecond, 2*time.Second))
			t.beats, t.ends = later(t.beats, again), later(t.ends, again)
		}
		w.asks = time.Now().Add(p.span(0, 2*time.Second))
		return
	case err != nil:
		p.find("answer", "%s: %v", p.name, err)
		return
	}
	for i, o := range outcomes {
		p.oracle.answer(due[i].job.ID, due[i].token, steps[i].Command, o.Err)
		w.answered(p, due[i], steps[i].Command, o)
	}
	for _, j := range claimed {
		w.take(p, j)
	}
	if ready && len(claimed) == 0 {
		p.find("answer", "%s was given nothing, and there is something", p.name)
	}
	if len(claimed) < free {
		w.asks = now.Add(p.span(time.Millisecond, time.Second))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

type writeResult struct {
	outcomes []commands.Result
	claimed  []projection.Job
}

func (w *simWorker) send(p *process, shows []string, steps []commands.Op, free int) ([]commands.Result,
	[]projection.Job, error) {
	if p.broken == "no token" {
		steps = p.withLiveTokens(steps)
	}
	answer, err := call(p, fmt.Sprintf("turn of %d steps and %d free slots", len(steps), free), shows,
		func() (turn writeResult, err error) {
			ctx, actor := p.t.Context(), "worker:"+p.name
			switch {
			case free > 0:
				turn.outcomes, turn.claimed, err = p.service.ApplyAndClaim(ctx, actor, steps, w.request(p, free))
			case len(steps) == 1:
				var o commands.Result
				o.Job, o.Err = p.service.Apply(ctx, actor, steps[0].Job.ID, steps[0].Command)
				if unknown(o.Err) {
					return turn, o.Err
				}
				turn.outcomes = []commands.Result{o}
			default:
				turn.outcomes, err = p.service.ApplyBatch(ctx, actor, steps)
			}
			return turn, err
		})
	return answer.outcomes, answer.claimed, err
}

func (w *simWorker) request(p *process, free int) commands.ClaimRequest {
	return commands.ClaimRequest{Queues: simQueues, Worker: p.worker(), Lease: w.lease, Limit: free}
}

// answered handles the answer to one command.
func (w *simWorker) answered(p *process, t *simTask, c commands.Command, o commands.Result) {
	_, beat := c.(commands.Heartbeat)
	switch {
	case beat && o.Err == nil:
		t.job, t.beats = o.Job, time.Now().Add(w.interval(o.Job))
	case beat && t.zombie:
		t.beats = time.Now().Add(w.interval(t.job))
	default:
		w.tasks = slices.DeleteFunc(w.tasks, func(other *simTask) bool { return other == t })
	}
}

// interval returns a third of the lease in the ledger, which a sweeper goes by: if the clock was set back it
// may be shorter than requested, or unknown.
func (w *simWorker) interval(j projection.Job) time.Duration {
	length := j.LeaseUntil.Sub(j.HeartbeatAt)
	if length < commands.MinLease {
		length = min(w.lease, commands.DefaultLease)
	}
	return length / 3
}

// take begins to work on j.
func (w *simWorker) take(p *process, j projection.Job) {
	h := p.oracle.tokens[j.Token]
	if h == nil || h.how != 0 || h.job.id != j.ID || h.worker != p.worker() {
		p.find("answer", "%s was given job %s with token %s, which it does not hold", p.name, j.ID, j.Token)
		return
	}
	if want := p.oracle.jobs[j.ID].payload; want != "" && want != string(j.Payload) {
		p.find("payload", "job %s has the payload %q, want %q", j.ID, j.Payload, want)
	}
	if got := ledger.Digest(j.Salt, j.Payload); j.Payload != nil && got != p.oracle.jobs[j.ID].digest {
		p.find("payload", "job %s has the payload %q, which its events do not name", j.ID, j.Payload)
	}
	t := &simTask{job: j, token: j.Token, beats: time.Now().Add(w.interval(j)),
		ends: time.Now().Add(p.span(0, 90*time.Second)), zombie: p.chance(0.4)}
	t.end = commands.Succeed{Token: j.Token, Result: fmt.Appendf(nil, "%s/%d", j.ID, j.Attempt)}
	if j.MaxRuntime > 0 {
		t.ends = earlier(t.ends, time.Now().Add(j.MaxRuntime))
	}
	if !p.calm {
		switch p.rng.IntN(8) {
		case 0:
			t.end = commands.Fail{Token: j.Token, Code: "oom"}
		case 1:
			t.end = commands.Fail{Token: j.Token, RetryIn: new(p.span(0, 10*time.Second)), NoRetry: p.chance(0.2)}
		case 2:
			t.end = commands.Release{Token: j.Token, Delay: p.span(0, 10*time.Second), Snooze: p.chance(0.5)}
		}
	}
	w.tasks = append(w.tasks, t)
}

// look reports whether there is work, and sets the time of the next look: when the next job is due, or when
// one may have been enqueued.
func (w *simWorker) look(p *process) bool {
	ready, next, err := p.service.Ready(p.t.Context(), w.request(p, 1))
	if err != nil {
		p.find("answer", "ready: %v", err)
	}
	w.asks = time.Now().Add(p.span(time.Second, 30*time.Second))
	if p.calm {
		w.asks = time.Now().Add(10 * time.Minute)
	}
	if !next.IsZero() {
		w.asks = earlier(w.asks, next.Add(-p.skew))
	}
	return ready
}
