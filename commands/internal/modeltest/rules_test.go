package modeltest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// judge returns the expected answer to c, and applies c to the model, with what follows for the jobs that
// wait. A refusal is recorded once.
func (m *model) judge(j *modelJob, c commands.Command) (want error) {
	want = m.judgeAlone(j, c)
	m.propagate()
	return want
}

func (m *model) judgeAlone(j *modelJob, c commands.Command) (want error) {
	switch c := c.(type) {
	case commands.Cancel:
		switch {
		case j.state == "cancelled":
			return nil
		case j.final():
			return commands.ErrConflict
		}
		m.stamp()
		j.after = nil
		j.end("cancelled", nil, "cancelled", time.Time{})
	case commands.Retry:
		return m.judgeRetry(j, c)
	case commands.ReportStop:
		return m.judgeStop(j, c)
	case commands.Reschedule:
		return m.judgeReschedule(j, c)
	case commands.Unblock:
		return m.judgeUnblock(j)
	case commands.Erase:
		switch {
		case j.erased:
			return nil
		case !j.final():
			return commands.ErrConflict
		}
		m.stamp()
		j.erased, j.after = true, nil
	default:
		return m.judgeOwner(j, c)
	}
	return nil
}

// judgeRetry makes the job wait while the command of its last claim may still run, which is until the end of
// the lease. A reclaimed claim also has such a lease if the clock was set back since.
func (m *model) judgeRetry(j *modelJob, c commands.Retry) error {
	if !j.final() || j.erased || c.NotSucceeded && j.state == "succeeded" {
		return commands.ErrConflict
	}
	if c.NotDependent && len(j.after) > 0 || j.while != "" && m.holder(j.queue, j.key) != nil {
		return commands.ErrConflict
	}
	if j.while == event.WhileUnfinished && !c.Now && m.openHolder(j.queue, j.key, j) {
		return commands.ErrConflict
	}
	j.end("", nil, "queued", m.stamp())
	j.failures, j.snoozes, j.keyFree, j.after = 0, 0, false, nil
	if !c.Alone {
		m.unread = append(m.unread, news{j, true})
	}
	if c.Now && len(j.claims) > 0 {
		j.claims[len(j.claims)-1].waived = true
		m.lift(j)
	}
	if c.Now || len(j.claims) == 0 {
		return nil
	}
	if last := j.claims[len(j.claims)-1]; last.lost() && !last.stopped && last.until.After(m.Now) {
		j.runAt, j.waits = last.until, j.seq
	}
	return nil
}

// judgeStop records an event of the claim. If the job still waits for just this claim, a second event makes
// it runnable.
func (m *model) judgeStop(j *modelJob, c commands.ReportStop) error {
	i := slices.IndexFunc(j.claims, func(claim *modelClaim) bool { return claim.token == c.Token })
	if i < 0 || !j.claims[i].lost() {
		return commands.ErrConflict
	}
	if j.claims[i].stopped {
		return nil
	}
	m.stamp()
	j.claims[i].stopped = true
	if i == len(j.claims)-1 {
		m.lift(j)
	}
	if i == len(j.claims)-1 && j.waits == j.seq && j.runAt.After(m.Now) {
		m.stamp()
		j.runAt, j.seq = m.Now, j.seq+1
	}
	return nil
}

func (m *model) judgeReschedule(j *modelJob, c commands.Reschedule) error {
	if j.state != "queued" && j.state != "blocked" {
		return commands.ErrConflict
	}
	at, priority := j.runAt, j.priority
	if c.Priority != nil {
		priority = *c.Priority
	}
	if c.RunAt != nil && !c.RunAt.Equal(j.runAt) {
		at = *c.RunAt
		if at.Before(m.Now) {
			at = m.Now
		}
	}
	if at.Equal(j.runAt) && priority == j.priority {
		return nil
	}
	m.stamp()
	j.runAt, j.priority, j.seq = at, priority, j.seq+1
	return nil
}

// shown returns the token and the name that an owner's command presents.
func shown(c commands.Command) (token, owner, name string) {
	switch c := c.(type) {
	case commands.Heartbeat:
		return c.Token, c.Owner, "heartbeat"
	case commands.Succeed:
		return c.Token, c.Owner, "succeed"
	case commands.Fail:
		return c.Token, c.Owner, "fail"
	case commands.Release:
		return c.Token, c.Owner, "release"
	case commands.TakeOver:
		return c.Token, c.Owner, "take over"
	}
	panic(fmt.Sprintf("%T shows no token", c))
}

func (m *model) judgeOwner(j *modelJob, c commands.Command) error {
	token, owner, name := shown(c)
	var claim *modelClaim
	if i := slices.IndexFunc(j.claims, func(c *modelClaim) bool { return c.token == token }); i >= 0 {
		claim = j.claims[i]
	}
	another := claim != nil && owner != "" && owner != claim.worker
	want := commands.ErrLeaseLost
	switch {
	case claim != nil && claim.ended == "" && another:
		return commands.ErrConflict
	case claim != nil && claim.ended == "":
		if over, ok := c.(commands.TakeOver); ok {
			if over.Process.Name != claim.worker {
				return commands.ErrConflict
			}
			claim.boot = over.Process.Boot
		}
		m.carryOut(j, c)
		return nil
	case claim == nil || claim.ended == "reclaimed":
	case claim.ended == "cancelled" && claim == j.claims[len(j.claims)-1]:
		want = commands.ErrCancelled
	case claim.ended == "cancelled":
	case sameContent(claim, c, j.erased) && another:
		return commands.ErrConflict
	case sameContent(claim, c, j.erased):
		return nil
	default:
		want = commands.ErrConflict
	}
	_, beat := c.(commands.Heartbeat) // of an orderly owner, whose claim has ended meanwhile, it is not recorded
	inOrder := beat && claim != nil && (want == commands.ErrCancelled || want == commands.ErrConflict)
	if key := token + name; !j.refused[key] && !inOrder {
		j.refused[key] = true
		m.stamp()
	}
	return want
}

// sameContent ignores requested times. Of an erased result it compares the size.
func sameContent(claim *modelClaim, c commands.Command, erased bool) bool {
	switch a := claim.by.(type) {
	case commands.Succeed:
		b, ok := c.(commands.Succeed)
		return ok && (a.Result == nil) == (b.Result == nil) && len(a.Result) == len(b.Result) &&
			(erased || string(a.Result) == string(b.Result))
	case commands.Fail:
		b, ok := c.(commands.Fail)
		return ok && cmp.Or(a.Code, "failed") == cmp.Or(b.Code, "failed") && a.Detail == b.Detail &&
			a.Signal == b.Signal && (claim.gaveUp || !b.NoRetry)
	case commands.Release:
		b, ok := c.(commands.Release)
		return ok && a.Snooze == b.Snooze && a.Reason == b.Reason
	}
	return false
}

// carryOut applies an owner's command to a live claim.
func (m *model) carryOut(j *modelJob, c commands.Command) {
	at := m.stamp()
	switch c := c.(type) {
	case commands.Heartbeat:
		m.extend(j, at, c.Lease)
	case commands.TakeOver:
		m.extend(j, at, c.Lease)
	case commands.Succeed:
		j.end("succeeded", c, "succeeded", time.Time{})
	case commands.Fail:
		wait := j.backoff(j.failures + 1)
		if c.RetryIn != nil {
			wait = *c.RetryIn
		}
		j.fail("failed", c, m.Now, wait, c.NoRetry)
	case commands.Release:
		wait := c.Delay
		if c.Snooze {
			j.snoozes++
			if wait == 0 {
				wait = j.backoff(j.snoozes)
			}
		}
		j.end("released", c, "queued", m.Now.Add(wait))
	}
}

// extend applies a heartbeat.
func (m *model) extend(j *modelJob, at time.Time, lease time.Duration) {
	j.beat = at
	j.state, j.lease = "running", m.Now.Add(lease)
	if !j.endBy.IsZero() && j.lease.After(j.endBy.Add(15*time.Second)) {
		j.lease = j.endBy.Add(15 * time.Second)
	}
	j.seq++
}

// next returns the jobs that a claim by such a worker should get, in order.
func (m *model) next(r commands.ClaimRequest) []*modelJob {
	var want []*modelJob
	for _, j := range m.jobs {
		fits := slices.Contains(r.Queues, j.queue) && !m.paused[j.queue] &&
			(j.version == "" || j.version == r.Version)
		for _, label := range j.requires {
			fits = fits && slices.Contains(r.Capabilities, label)
		}
		if fits && j.state == "queued" && !j.runAt.After(m.Now) {
			want = append(want, j)
		}
	}
	slices.SortFunc(want, func(a, b *modelJob) int {
		return cmp.Or(b.priority-a.priority, a.runAt.Compare(b.runAt), cmp.Compare(a.id, b.id))
	})
	return want[:min(r.Limit, len(want))]
}

// give applies the claim of j, with the token that was given.
func (m *model) give(j *modelJob, r commands.ClaimRequest, token string) {
	at := m.stamp()
	j.state, j.lease, j.endBy, j.beat = "claimed", m.Now.Add(r.Lease), time.Time{}, at
	if j.runtime > 0 {
		j.endBy = at.Add(j.runtime)
		if last := m.Now.Add(j.runtime + 15*time.Second); j.lease.After(last) {
			j.lease = last
		}
	}
	j.keyFree = j.while == event.WhileQueued
	j.claims = append(j.claims, &modelClaim{token: token, worker: r.Worker.Name, boot: r.Worker.Boot})
	j.attempt++
	j.seq++
}
