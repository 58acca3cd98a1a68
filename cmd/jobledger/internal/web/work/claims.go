package work

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// claims is a turn of a worker: how claims ended, heartbeats, and the next claims, in one transaction. If
// nothing is ready and the request has no outcomes, it waits as long as the worker asked.
func (m *Room) claims(w http.ResponseWriter, r *http.Request, c Caller) error {
	if _, err := query(r); err != nil {
		return err
	}
	var asked wire.Claims
	if err := read(w, r, MaxBody, &asked); err != nil {
		return err
	}
	request, err := asked.Request()
	if err != nil {
		return err
	}
	wait, err := waitOf(asked.Wait)
	if err != nil {
		return err
	}
	if len(asked.Tokens) > MaxTokens || len(asked.Outcomes)+len(asked.Heartbeats) > MaxOps {
		return refusal(http.StatusRequestEntityTooLarge, "too_large",
			"more than 100 tokens, or more than 1,000 outcomes and heartbeats")
	}
	ops, err := m.opsOf(r.Context(), c, asked)
	if err != nil {
		return err
	}
	if len(asked.Tokens) == 0 {
		if _, err := m.carryOut(w, r, c, &ops, nil); err != nil {
			return err
		}
		return m.answerTurn(w, r, ops, nil)
	}
	err = cmp.Or(request.Check(), commands.ReservedLabel("capability", request.Capabilities))
	if err != nil {
		return err
	}
	if err := mayUse(c, access.Work, request.Queues...); err != nil {
		return err
	}
	if err := m.fits(r.Context(), request.Worker, request.Queues, request.Capabilities); err != nil {
		return err
	}
	m.Busy()
	turn := m.turns.enter(asked.Boot + " " + asked.Tokens[0])
	gone := func(jobs []projection.Job) error { // the client may be back soon; else others are to have the jobs
		if errors.Is(context.Cause(r.Context()), ErrWithdrawn) {
			defer turn.leave()
			m.release(c, jobs)
			return m.answerTurn(w, r, ops, nil)
		}
		go func() {
			defer turn.leave()
			m.giveBack(c, jobs, turn)
		}()
		return context.Canceled
	}
	if len(ops.outcomes)+len(ops.beats) > 0 || wait == 0 {
		jobs, err := m.carryOut(w, r, c, &ops, &request)
		if err == nil && len(jobs) > 0 && r.Context().Err() != nil {
			return gone(jobs)
		}
		defer turn.leave()
		if err != nil {
			return err
		}
		return m.answerClaims(w, r, ops, jobs, turn)
	}
	jobs, err := m.waitFor(w, r, c, request, wait, turn.isLast)
	if err == nil && r.Context().Err() != nil {
		return gone(jobs)
	}
	defer turn.leave()
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	return m.answerClaims(w, r, ops, jobs, turn)
}

// answerClaims is answerTurn that takes in whether the client gets claims.
func (m *Room) answerClaims(w http.ResponseWriter, r *http.Request, o ops, jobs []projection.Job,
	turn entry) error {
	if len(jobs) > 0 {
		turn.gave()
	}
	return m.answerTurn(w, r, o, jobs)
}

// ErrWithdrawn is the cause with which the context of a request ends that its client does not want any more.
// It is answered as if no job had come, and its claims are given back at once.
var ErrWithdrawn = errors.New("work: the request was withdrawn")

// errNone means that nothing was claimed.
var errNone = errors.New("work: nothing was claimed")

// turnAnswer is the answer to a turn.
type turnAnswer struct {
	Claims     []either[claimJSON] `json:"claims"`
	Outcomes   []commandAnswer     `json:"outcomes"`
	Heartbeats []commandAnswer     `json:"heartbeats"`
}

func waitOf(seconds float64) (time.Duration, error) {
	wait, err := wire.Duration("wait", seconds)
	if err == nil && (wait < 0 || wait > wire.MaxWait) {
		err = &commands.InvalidError{Field: "wait", Got: wait.String(), Allowed: "0 to 60 seconds"}
	}
	return wait, err
}

// ops are the commands of a turn.
type ops struct {
	write    []commands.Op   // those that are carried out
	outcomes []commandAnswer // the answers so far: the problems of those that are not
	beats    []commandAnswer
	index    []int // of write: the answer's, from 0 the outcomes, and below that ^n the heartbeats
}

// opsOf reads the commands of a turn. An item that cannot be read is an error; an item about a job in a queue
// that the caller may not use is answered as if the job did not exist.
func (m *Room) opsOf(ctx context.Context, c Caller, asked wire.Claims) (o ops, err error) {
	lease, err := wire.Duration("lease", asked.Lease)
	if err != nil {
		return o, err
	}
	var ids []event.JobID
	for _, one := range asked.Outcomes {
		ids = append(ids, one.Job)
	}
	for _, one := range asked.Heartbeats {
		ids = append(ids, one.Job)
	}
	unsaid := lease == 0 && len(asked.Heartbeats) > 0
	found, err := m.jobs(ctx, c, ids, unsaid)
	if err != nil {
		return o, err
	}
	visible := func(id event.JobID) error {
		if _, ok := found[id]; !ok && !c.AllQueues() {
			return errHidden(id)
		}
		return nil
	}
	add := func(id event.JobID, token string, command commands.Command, index int) {
		o.write = append(o.write, commands.Op{Job: m.known.get(id, token), Command: command})
		o.index = append(o.index, index)
	}
	for i, one := range asked.Outcomes {
		command, err := one.Command()
		if err = checkAbout(one.Job, command, err); err != nil {
			return o, err
		}
		o.outcomes = append(o.outcomes, commandAnswer{Token: one.Token, Problem: problemOf(visible(one.Job))})
		if o.outcomes[i].Problem == nil {
			add(one.Job, one.Token, command, i)
		}
	}
	for i, one := range asked.Heartbeats {
		own := lease
		if j, ok := found[one.Job]; ok && lease == 0 {
			own = lastLease(j)
		}
		command, err := one.Command(own)
		if err = checkAbout(one.Job, command, err); err != nil {
			return o, err
		}
		o.beats = append(o.beats, commandAnswer{Token: one.Token, Problem: problemOf(visible(one.Job))})
		if o.beats[i].Problem == nil {
			add(one.Job, one.Token, command, ^i)
		}
	}
	return o, nil
}

// checkAbout returns err, with which a command was read, or what is wrong with it or the job that it names.
func checkAbout(job event.JobID, command commands.Command, err error) error {
	if err == nil {
		err = commands.CheckCommand(command)
	}
	if err == nil {
		err = commands.CheckText("job", string(job), commands.MaxKey)
	}
	return err
}

// carryOut carries out a turn without waiting, and puts the answers into o. request is nil where nothing is
// to be claimed.
func (m *Room) carryOut(w http.ResponseWriter, r *http.Request, c Caller, o *ops,
	request *commands.ClaimRequest) (
	jobs []projection.Job, err error) {
	if request == nil && len(o.outcomes)+len(o.beats) == 0 {
		return nil, &commands.InvalidError{Field: "tokens",
			Allowed: "one token at least, or an outcome or a heartbeat"}
	}
	var results []commands.Result
	err = m.write(w, r, func(ctx context.Context) error {
		switch {
		case request != nil:
			results, jobs, err = m.Service.ApplyAndClaim(ctx, c.Actor, o.write, *request)
		case len(o.write) > 0:
			results, err = m.Service.ApplyBatch(ctx, c.Actor, o.write)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if jobs = ownOf(c, jobs); len(jobs) > 0 {
		m.hub.claimed()
		m.known.put(jobs...)
	}
	as := shapeOf(w, r)
	for i, result := range results {
		a := (*commandAnswer)(nil)
		if at := o.index[i]; at >= 0 {
			a = &o.outcomes[at]
			m.known.forget(a.Token)
		} else if a = &o.beats[^at]; result.Err == nil {
			m.known.put(result.Job)
		}
		a.Problem = problemOf(result.Err)
		if result.Job.State != 0 {
			a.Job = as.owned(result.Job)
		}
	}
	return jobs, nil
}

// ownOf returns the jobs in queues that c may use. The tokens of a request may match live claims of any
// queue: then the request is a repeat.
func ownOf(c Caller, jobs []projection.Job) []projection.Job {
	return slices.DeleteFunc(jobs, func(j projection.Job) bool { return !c.May(access.Work, j.Queue) })
}

// answerTurn answers with what was carried out and claimed.
func (m *Room) answerTurn(w http.ResponseWriter, r *http.Request, o ops, jobs []projection.Job) error {
	if len(jobs)+len(o.outcomes)+len(o.beats) == 0 {
		return m.empty(w, r)
	}
	return m.send(w, r, http.StatusOK, turnAnswer{Claims: shapeOf(w, r).claims(jobs),
		Outcomes: append([]commandAnswer{}, o.outcomes...), Heartbeats: append([]commandAnswer{}, o.beats...)})
}
