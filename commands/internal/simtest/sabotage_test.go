package simtest

import (
	"context"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// sabotages are the rules that can be broken, and the findings that each may cause.
var sabotages = []struct {
	name  string
	finds []string
	// it concerns jobs that wait or share a key; otherwise there are none, and the fault is found sooner
	waits bool
}{
	// a sweeper that trusts its own clock, which is an hour ahead
	{"no grace", []string{"live job reclaimed"}, false},
	// a sweeper that reclaims what it once saw expired, whichever worker holds it now
	{"no CAS", []string{"live job reclaimed"}, false},
	{"no token", []string{"fence", "answer"}, false}, // an owner whose token is not checked
	{"same token", []string{"token"}, false},         // tokens that are not fresh
	// the jobs of dead workers are never reclaimed
	{"no sweeper", []string{"stuck"}, false},
	// a row that is queued again without an event
	{"row without event", []string{"two live claims", "answer"}, false},
	{"uncounted failures", []string{"tried too often"}, false}, // failures that are not counted
	// a client that takes an unknown outcome for success
	{"trusts unknown commits", []string{"acknowledged and not there"}, false},
	// blocked jobs that are queued without an event
	{"runs blocked jobs", []string{"claimed while blocked", "answer"}, true},
	// what jobs wait for is forgotten: nothing queues or cancels them
	{"forgets dependencies", []string{"left blocked", "blocked", "answer", "transition"}, true},
	// jobs that were cancelled because of another one are forgotten when that one is retried
	{"forgets broken dependencies", []string{"not healed"}, true},
	{"forgets keys", []string{"two with one key"}, true}, // a key that is free while its job waits
}

// jobsWait reports whether the history has jobs that wait for others or share a key.
func (s *sim) jobsWait() bool {
	for _, other := range sabotages {
		if other.name == s.broken {
			return other.waits
		}
	}
	return true
}

// interfere breaks the rule from outside the program, before p acts.
func (p *process) interfere() {
	var err error
	switch p.broken {
	case "no grace":
		p.skew, p.oracle.disturbed = 0, time.Now()
		if p.name == "sweeper" {
			p.skew = time.Hour
		}
	case "same token":
		if _, ok := p.actor.(*simWorker); ok {
			p.service.NewID = func() string { return id(1_000_000) }
		}
	case "row without event":
		err = p.service.Store.Write(p.t.Context(), func(tx *ledger.Tx) error {
			held, err := projection.List(p.t.Context(), tx, projection.Filter{States: []event.State{event.Running}})
			if err != nil || len(held) == 0 || !p.chance(0.05) {
				return err
			}
			return claims.Put(p.t.Context(), tx, held[0], letGo(held[0]))
		})
	case "runs blocked jobs":
		err = p.spoil(event.Blocked, func(j projection.Job) projection.Job {
			j.State = event.Queued
			return j
		})
	case "forgets keys":
		err = p.spoil(event.Queued, func(j projection.Job) projection.Job {
			j.KeyFree = j.UniqueWhile != ""
			return j
		})
	case "forgets dependencies":
		err = p.execute(`DELETE FROM deps`)
	case "forgets broken dependencies":
		err = p.execute(`DELETE FROM deps WHERE broken = 1`)
	case "uncounted failures":
		err = p.execute(`UPDATE jobs SET failures = 0`)
	}
	if err != nil {
		p.t.Errorf("seed %d: %s: %v", p.seed, p.broken, err)
	}
}

// execute changes the tables without an event.
func (p *process) execute(statement string) error {
	return p.service.Store.Write(p.t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(statement)
		return err
	})
}

// spoil changes the rows of the jobs in a state, without an event.
func (p *process) spoil(state event.State, to func(projection.Job) projection.Job) error {
	return p.service.Store.Write(p.t.Context(), func(tx *ledger.Tx) error {
		jobs, err := projection.List(p.t.Context(), tx, projection.Filter{States: []event.State{state}})
		for _, j := range jobs {
			if err == nil {
				err = claims.Put(p.t.Context(), tx, j, to(j))
			}
		}
		return err
	})
}

// letGo returns j without its owner.
func letGo(j projection.Job) projection.Job {
	return projection.Job{N: j.N, ID: j.ID, Seq: j.Seq, State: event.Queued, Queue: j.Queue,
		Priority: j.Priority, RunAt: j.RunAt, Key: j.Key,
		MaxAttempts: j.MaxAttempts, MaxRuntime: j.MaxRuntime, Attempt: j.Attempt, Failures: j.Failures,
		Snoozes: j.Snoozes}
}

// withLiveTokens gives each op the token that is live now, for any caller.
func (p *process) withLiveTokens(steps []commands.Op) []commands.Op {
	for i, step := range steps {
		j := p.get(step.Job.ID)
		if j.Token == "" {
			continue
		}
		switch c := step.Command.(type) {
		case commands.Heartbeat:
			c.Token = j.Token
			step.Command = c
		case commands.Succeed:
			c.Token = j.Token
			step.Command = c
		case commands.Fail:
			c.Token = j.Token
			step.Command = c
		case commands.Release:
			c.Token = j.Token
			step.Command = c
		}
		steps[i] = commands.Op{Job: projection.Job{ID: j.ID}, Command: step.Command}
	}
	return steps
}

func (p *process) get(id event.JobID) (j projection.Job) {
	err := p.service.Store.Read(p.t.Context(), func(tx *ledger.Tx) (err error) {
		j, _, err = projection.Get(p.t.Context(), tx, id)
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
	return j
}

// sweepBlindly reclaims what had expired when it last looked, if any worker holds it.
func (w *simSweeper) sweepBlindly(p *process) (report commands.SweepReport, err error) {
	ctx := context.Background()
	err = p.service.Store.Write(ctx, func(tx *ledger.Tx) error {
		for _, l := range w.expired {
			j, _, err := projection.Get(ctx, tx, l.ID)
			if err != nil || !j.State.Held() {
				continue
			}
			after := letGo(j)
			after.Seq, after.Failures, after.RunAt, after.ErrorCode = j.Seq+1, j.Failures+1, tx.Now(),
				event.LeaseExpired
			retryAt := tx.Now()
			if after.Failures >= j.MaxAttempts {
				after.State, after.FinishedAt, retryAt = event.FailedState, tx.At(), time.Time{}
			}
			if err := claims.Put(ctx, tx, j, after); err != nil {
				return err
			}
			if err := tx.Append(ctx, event.Event{Pos: tx.Next(), Job: j.ID, N: j.N, Seq: after.Seq, At: tx.At(),
				Actor:  "sweeper:" + p.name,
				Worker: j.Worker, Token: j.Token, Attempt: j.Attempt, From: j.State, To: after.State,
				Body: &event.Reclaimed{
					Reason: event.LeaseExpired, LastHeartbeat: j.HeartbeatAt, LeaseUntil: j.LeaseUntil,
					RetryAt: retryAt}}); err != nil {
				return err
			}
		}
		w.expired, err = projection.Expired(ctx, tx, tx.Now(), 100)
		return err
	})
	report.Expired = len(w.expired)
	return report, err
}
