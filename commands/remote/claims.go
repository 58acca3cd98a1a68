package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// MaxTokens is how many jobs one request claims.
const MaxTokens = 100

// Claim is that of [commands.Service].
func (c *Client) Claim(ctx context.Context, r commands.ClaimRequest) ([]projection.Job, error) {
	return c.ClaimWithin(ctx, r, 0)
}

// ClaimWithin is Claim that waits for a job, for so long at most; then it returns none.
func (c *Client) ClaimWithin(ctx context.Context, r commands.ClaimRequest, wait time.Duration) (
	[]projection.Job, error) {
	end := time.Now().Add(wait)
	for {
		_, jobs, err := c.turn(ctx, nil, r, min(wire.MaxWait, max(0, time.Until(end))))
		if err != nil || len(jobs) > 0 || !time.Now().Before(end) {
			return jobs, err
		}
		select { // a server that ends answers at once
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(100*time.Millisecond, time.Until(end))):
		}
	}
}

// ApplyAndClaim is that of [commands.Service], for the commands of a claim's owner. It claims up to MaxTokens
// jobs.
func (c *Client) ApplyAndClaim(ctx context.Context, _ string, ops []commands.Op, r commands.ClaimRequest) (
	[]commands.Result, []projection.Job, error) {
	return c.turn(ctx, ops, r, 0)
}

// ApplyBatch is that of [commands.Service], for the commands of a claim's owner.
func (c *Client) ApplyBatch(ctx context.Context, _ string, ops []commands.Op) ([]commands.Result, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	results, err := c.apply(ctx, wire.Claims{}, ops)
	return results, err
}

// Apply is that of [commands.Service], for the commands of a claim's owner and TakeOver. A Lease of 0 repeats
// the length of the last one.
func (c *Client) Apply(ctx context.Context, _ string, id event.JobID, command commands.Command) (
	projection.Job, error) {
	if t, ok := command.(commands.TakeOver); ok {
		return c.takeOver(ctx, id, t)
	}
	results, err := c.apply(ctx, wire.Claims{}, []commands.Op{{Job: projection.Job{ID: id}, Command: command}})
	if err != nil {
		return projection.Job{}, err
	}
	return results[0].Job, results[0].Err
}

func (c *Client) takeOver(ctx context.Context, id event.JobID, t commands.TakeOver) (
	j projection.Job, err error) {
	var answer wire.JobAnswer
	_, err = c.send(ctx, request{method: http.MethodPut, path: claimPath(id, t.Token) + "/process",
		body: wire.TakeOver{Process: wire.ProcessOf(t.Process), Owner: t.Owner, Lease: t.Lease.Seconds()}}, &answer)
	if err != nil {
		return j, err
	}
	if j, err = answer.Projection(); err == nil {
		t.Process.Name = j.Worker.Name
		j.Worker = t.Process
	}
	return j, err
}

func claimPath(id event.JobID, token string) string {
	return "/jobs/" + url.PathEscape(string(id)) + "/claims/" + url.PathEscape(token)
}

// turn carries out ops and claims.
func (c *Client) turn(ctx context.Context, ops []commands.Op, r commands.ClaimRequest, wait time.Duration) (
	[]commands.Result, []projection.Job, error) {
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	r.Limit = cmp.Or(r.Limit, max(1, len(r.Tokens)))
	if r.Tokens == nil {
		for range min(r.Limit, MaxTokens) {
			r.Tokens = append(r.Tokens, ulid.Make().String())
		}
	}
	body := wire.Claims{Process: wire.ProcessOf(r.Worker), Queues: r.Queues, Capabilities: r.Capabilities,
		Tokens: r.Tokens, Lease: r.Lease.Seconds(), MaxRuntime: r.MaxRuntime.Seconds(), Wait: wait.Seconds()}
	body.Version = r.Version
	if err := addOps(&body, ops); err != nil {
		return nil, nil, err
	}
	patience := c.patience
	if r.Lease > 0 { // others of this process need their heartbeats
		patience = min(patience, r.Lease/6)
	}
	c.lost.begin(r.Worker.Boot, r.Tokens)
	var answer wire.ClaimsAnswer
	_, err := c.send(ctx, request{method: http.MethodPost, path: "/claims", body: body, wait: wait,
		patience: patience}, &answer)
	if err != nil {
		if p, answered := errors.AsType[*wire.Problem](err); answered && !p.Temporary() {
			c.lost.answered(r.Worker.Boot, r.Tokens)
		} else {
			c.lost.unanswered(r.Worker.Boot, r.Tokens)
		}
		return nil, nil, err
	}
	c.lost.answered(r.Worker.Boot, r.Tokens)
	results, err := resultsOf(ops, answer)
	if err != nil {
		return nil, nil, err
	}
	var jobs []projection.Job
	for _, one := range answer.Claims {
		j, err := one.Projection()
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(r.Tokens, j.Token) {
			return nil, nil, fmt.Errorf("claim: job %s has a token that was not asked for", j.ID)
		}
		j.Worker = r.Worker
		jobs = append(jobs, j)
	}
	c.lost.giveBack(ctx, c, r.Worker)
	return results, jobs, nil
}

// apply carries out ops and claims nothing.
func (c *Client) apply(ctx context.Context, body wire.Claims, ops []commands.Op) ([]commands.Result, error) {
	if err := addOps(&body, ops); err != nil {
		return nil, err
	}
	var answer wire.ClaimsAnswer
	_, err := c.send(ctx, request{method: http.MethodPost, path: "/claims", body: body}, &answer)
	if err != nil {
		return nil, err
	}
	return resultsOf(ops, answer)
}

// addOps adds ops to the body of a request.
func addOps(body *wire.Claims, ops []commands.Op) error {
	for _, op := range ops {
		checked := op.Command
		if h, ok := checked.(commands.Heartbeat); ok && h.Lease == 0 { // as long as the last one
			h.Lease = commands.DefaultLease
			checked = h
		}
		if err := commands.CheckCommand(checked); err != nil {
			return err
		}
		if h, ok := op.Command.(commands.Heartbeat); ok {
			body.Heartbeats = append(body.Heartbeats, wire.Heartbeat{Job: op.Job.ID, Token: h.Token,
				Owner: h.Owner, Progress: h.Progress, Note: h.Note, Lease: h.Lease.Seconds(),
				CannotEnd: h.CannotEnd})
			continue
		}
		o, ok := wire.OutcomeOf(op.Job.ID, op.Command)
		if !ok {
			return &commands.InvalidError{Field: "command", Got: fmt.Sprintf("%T", op.Command),
				Allowed: "those of a claim's owner"}
		}
		body.Outcomes = append(body.Outcomes, o)
	}
	return nil
}

// resultsOf brings the answers into the order of ops.
func resultsOf(ops []commands.Op, answer wire.ClaimsAnswer) (results []commands.Result, err error) {
	outcomes, beats := answer.Outcomes, answer.Heartbeats
	for _, op := range ops {
		r := commands.Result{Job: op.Job}
		if _, ok := op.Command.(commands.Heartbeat); ok {
			if len(beats) == 0 {
				return nil, errFew
			}
			r.Job, r.Err = changed(op.Job, beats[0])
			beats = beats[1:]
		} else {
			if len(outcomes) == 0 {
				return nil, errFew
			}
			r.Job, r.Err = changed(op.Job, outcomes[0])
			outcomes = outcomes[1:]
		}
		results = append(results, r)
	}
	return results, nil
}

var errFew = errors.New("remote: there are fewer answers than commands")

// changed is j after a command of its owner.
func changed(j projection.Job, a wire.Answer) (projection.Job, error) {
	if a.Job != nil {
		after, err := a.Job.Projection()
		if err != nil {
			return j, err
		}
		after.Payload, after.Salt, after.Token = j.Payload, j.Salt, j.Token
		if j.Worker.Boot != "" {
			after.Worker = j.Worker
		}
		j = after
	}
	if a.Problem != nil {
		return j, a.Problem
	}
	return j, nil
}

// Held is that of [commands.Service].
func (c *Client) Held(ctx context.Context, boot string) (held []projection.Job, err error) {
	var answer wire.Items
	if _, err = c.send(ctx, request{method: http.MethodGet, path: "/claims?boot=" + url.QueryEscape(boot)},
		&answer); err != nil {
		return nil, err
	}
	for _, one := range answer.Items {
		j, err := one.Projection()
		if err != nil {
			return nil, err
		}
		held = append(held, j)
	}
	return held, nil
}

// Live answers that all claims are: over HTTP, a heartbeat finds out.
func (c *Client) Live(_ context.Context, jobs []projection.Job) (map[string]bool, error) {
	live := make(map[string]bool, len(jobs))
	for _, j := range jobs {
		live[j.Token] = true
	}
	return live, nil
}

// WorkerStarted is that of [commands.Service].
func (c *Client) WorkerStarted(ctx context.Context, w event.Worker, queues, capabilities []string) error {
	return c.announce(ctx, w, wire.Worker{Process: wire.ProcessOf(w), Queues: queues,
		Capabilities: capabilities})
}

// Present is that of [commands.Service]. It also gives back claims whose answer was lost.
func (c *Client) Present(ctx context.Context, w event.Worker) error {
	err := c.announce(ctx, w, wire.Worker{Process: wire.ProcessOf(w), Again: true})
	if err == nil {
		c.lost.giveBack(ctx, c, w)
	}
	return err
}

func (c *Client) announce(ctx context.Context, w event.Worker, body wire.Worker) error {
	_, err := c.send(ctx, request{method: http.MethodPut, path: "/workers/" + url.PathEscape(w.Boot),
		body: body}, nil)
	return err
}

// WorkerStopped is that of [commands.Service].
func (c *Client) WorkerStopped(ctx context.Context, w event.Worker) error {
	c.lost.giveBack(ctx, c, w)
	_, err := c.send(ctx, request{method: http.MethodDelete, path: "/workers/" + url.PathEscape(w.Boot)}, nil)
	return err
}
