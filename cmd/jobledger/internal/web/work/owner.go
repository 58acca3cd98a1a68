package work

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// outcome ends one claim. Sent again with the same content, it has the same answer.
func (m *Room) outcome(w http.ResponseWriter, r *http.Request, c Caller) error {
	var asked wire.Outcome
	id, token := event.JobID(r.PathValue("job")), r.PathValue("token")
	if err := read(w, r, 7*MaxOne, &asked); err != nil {
		return err
	}
	if asked.Job != "" && asked.Job != id || asked.Token != "" && asked.Token != token {
		return fault.Usagef("the body names another claim than the address")
	}
	asked.Token = token
	command, err := asked.Command()
	if err == nil {
		err = commands.CheckCommand(command)
	}
	if err != nil {
		return err
	}
	if err := m.visible(r, c, id); err != nil {
		return err
	}
	var j projection.Job
	err = m.write(w, r, func(ctx context.Context) error {
		j, err = m.Service.Apply(ctx, c.Actor, id, command)
		return err
	})
	if err != nil {
		return err
	}
	return m.send(w, r, http.StatusOK, shapeOf(w, r).owned(j))
}

// visible returns an error if the job is not there, or is of a queue that c is not for.
func (m *Room) visible(r *http.Request, c Caller, id event.JobID) error {
	found, err := m.jobs(r.Context(), c, []event.JobID{id}, false)
	if err == nil && found != nil && len(found) == 0 {
		err = errHidden(id)
	}
	return err
}

// takeOver makes another process the one that holds the claim.
func (m *Room) takeOver(w http.ResponseWriter, r *http.Request, c Caller) error {
	var asked wire.TakeOver
	id := event.JobID(r.PathValue("job"))
	if err := read(w, r, MaxOne, &asked); err != nil {
		return err
	}
	found, err := m.jobs(r.Context(), c, []event.JobID{id}, true)
	if err != nil {
		return err
	}
	before, ok := found[id]
	if !ok {
		return errHidden(id)
	}
	command := commands.TakeOver{Token: r.PathValue("token"), Owner: asked.Owner, Process: asked.Event()}
	command.Process.Name = cmp.Or(command.Process.Name, before.Worker.Name)
	command.Process.Version = cmp.Or(command.Process.Version, before.Worker.Version)
	if command.Lease, err = wire.Duration("lease", asked.Lease); err != nil {
		return err
	}
	command.Lease = cmp.Or(command.Lease, lastLease(before))
	var j projection.Job
	err = m.write(w, r, func(ctx context.Context) error {
		j, err = m.Service.Apply(ctx, c.Actor, id, command)
		return err
	})
	if err != nil {
		return err
	}
	if err := m.Service.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		return projection.LoadBodies(r.Context(), tx, &j)
	}); err != nil {
		return err
	}
	return m.send(w, r, http.StatusOK, shapeOf(w, r).claim(j))
}

// lastLease is how long the last lease of j was, in the bounds of leases.
func lastLease(j projection.Job) time.Duration {
	lease := j.LeaseUntil.Sub(j.HeartbeatAt)
	if lease < commands.MinLease { // the clock was set back in between, or there is no claim
		return commands.DefaultLease
	}
	return min(lease, commands.MaxLease)
}

// beatsJSON is the answer to the heartbeats of a process.
type beatsJSON struct {
	LeaseUntil *string     `json:"lease_until"` // the first end of those that were extended; null: none was
	Lost       []lostJSON  `json:"lost"`        // claims on which the work must stop
	Unknown    []claimName `json:"unknown"`     // those of the process that the request did not name
}

// lostJSON is a claim on which the work must stop.
type lostJSON struct {
	Job    event.JobID `json:"job"`
	Token  string      `json:"token"`
	Code   string      `json:"code"`
	Detail string      `json:"detail"`
}

// claimName names a claim.
type claimName struct {
	Job   event.JobID `json:"job"`
	Token string      `json:"token"`
}

// heartbeats extends the leases of a process, in one transaction, and says what it holds besides.
func (m *Room) heartbeats(w http.ResponseWriter, r *http.Request, c Caller) error {
	var asked wire.Heartbeats
	if err := read(w, r, MaxBody, &asked); err != nil {
		return err
	}
	if len(asked.Claims) > MaxOps {
		return refusal(http.StatusRequestEntityTooLarge, "too_large", "more than 1,000 claims")
	}
	lease, err := wire.Duration("lease", asked.Lease)
	if err != nil {
		return err
	}
	var ids []event.JobID
	for _, one := range asked.Claims {
		ids = append(ids, one.Job)
	}
	found, err := m.jobs(r.Context(), c, ids, lease == 0)
	if err != nil {
		return err
	}
	answer := beatsJSON{Lost: []lostJSON{}, Unknown: []claimName{}}
	var ops []commands.Op
	for _, one := range asked.Claims {
		own := lease
		if j, ok := found[one.Job]; !ok && found != nil {
			answer.lose(one.Job, one.Token, errHidden(one.Job))
			continue
		} else if ok && lease == 0 {
			own = lastLease(j)
		}
		command, err := one.Command(own)
		if err = checkAbout(one.Job, command, err); err != nil {
			return err
		}
		ops = append(ops, commands.Op{Job: m.known.get(one.Job, one.Token), Command: command})
	}
	var beat commands.Beat
	err = m.write(w, r, func(ctx context.Context) error {
		beat, err = m.Service.Beat(ctx, c.Actor, asked.Boot, ops)
		return err
	})
	if err != nil {
		return err
	}
	var first time.Time
	for i, result := range beat.Results {
		h, _ := ops[i].Command.(commands.Heartbeat)
		if result.Err != nil {
			answer.lose(ops[i].Job.ID, h.Token, result.Err)
			continue
		}
		m.known.put(result.Job)
		if until := result.Job.LeaseUntil; first.IsZero() || until.Before(first) {
			first = until
		}
	}
	answer.LeaseUntil = words.TimeOrNull(first)
	for _, j := range beat.Unknown {
		if c.Queue(j.Queue) {
			answer.Unknown = append(answer.Unknown, claimName{j.ID, j.Token})
		}
	}
	return m.send(w, r, http.StatusOK, answer)
}

func (a *beatsJSON) lose(id event.JobID, token string, err error) {
	p := problemOf(err)
	a.Lost = append(a.Lost, lostJSON{id, token, p.Code, p.Detail})
}

// held answers what the process with this boot holds.
func (m *Room) held(w http.ResponseWriter, r *http.Request, c Caller) error {
	params, err := query(r, "boot")
	if err != nil {
		return err
	}
	boot := params.Get("boot")
	if boot == "" {
		return &commands.InvalidError{Field: "boot", Allowed: "that of the process"}
	}
	jobs, err := m.Service.Held(r.Context(), boot)
	if err != nil {
		return err
	}
	out, as := items[either[claimJSON]]{Items: []either[claimJSON]{}}, shapeOf(w, r)
	for _, j := range jobs {
		if c.Queue(j.Queue) {
			out.Items = append(out.Items, as.claim(j))
		}
	}
	return m.send(w, r, http.StatusOK, out)
}
