package work

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// waitFor claims, and waits for a job to be ready. It returns errNone where there was none, the server
// ends, or another request with the same tokens came.
func (m *Room) waitFor(w http.ResponseWriter, r *http.Request, c Caller, request commands.ClaimRequest,
	wait time.Duration, isLast func() bool) (jobs []projection.Job, err error) {
	arrived(w)
	if a, ok := w.(*arrival); ok {
		a.forget() // its body was read
	}
	end, err := m.begin(c)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := lasting(w, wait); err != nil {
		return nil, err
	}
	woken, leave := m.hub.join(request)
	defer leave()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for first := true; ; first = false {
		if !isLast() || r.Context().Err() != nil {
			return nil, errNone
		}
		ready := true
		if first { // a claim takes the write lock, even if nothing is ready
			if ready, err = m.isReady(r.Context(), request); err != nil {
				return nil, err
			}
		}
		if ready {
			err = m.write(w, r, func(ctx context.Context) error {
				_, jobs, err = m.Service.ApplyAndClaim(ctx, c.Actor, nil, request)
				return err
			})
			if jobs = ownOf(c, jobs); len(jobs) > 0 {
				m.hub.claimed()
				m.known.put(jobs...)
			}
			if err != nil || len(jobs) > 0 {
				return jobs, err
			}
		}
		select {
		case <-woken:
		case <-timer.C:
			return nil, errNone
		case <-m.Closing:
			w.Header().Set("Retry-After", "1")
			return nil, errNone
		case <-r.Context().Done():
			return nil, errNone
		}
	}
}

// isReady reports whether to claim: a job is ready, or claims with these tokens may live already.
func (m *Room) isReady(ctx context.Context, request commands.ClaimRequest) (bool, error) {
	ready, _, err := m.Service.Ready(ctx, request)
	if err != nil || ready {
		return ready, err
	}
	held, err := m.Service.Held(ctx, request.Worker.Boot)
	return len(held) > 0, err
}

// lasting lifts the server's limits of time for a request that waits.
func lasting(w http.ResponseWriter, wait time.Duration) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return control.SetWriteDeadline(time.Now().Add(wait + 30*time.Second))
}

// giveBack releases the claims of a client that has gone, unless it sends the request again in time and gets
// them.
func (m *Room) giveBack(c Caller, jobs []projection.Job, turn entry) {
	timer := time.NewTimer(resendWithin)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.Closing:
	}
	if len(jobs) == 0 || turn.laterGave() {
		return
	}
	m.release(c, jobs)
}

// release gives claims back that their client does not get.
func (m *Room) release(c Caller, jobs []projection.Job) {
	if len(jobs) == 0 {
		return
	}
	var release []commands.Op
	for _, j := range jobs {
		release = append(release, commands.Op{Job: j,
			Command: commands.Release{Token: j.Token, Reason: "the client had gone before it got the claim"}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), resendWithin)
	defer cancel()
	if _, err := m.Service.ApplyBatch(ctx, c.Actor, release); err != nil {
		m.Report("give back %s: %v", words.Count(int64(len(jobs)), "claim"), err) // their leases end
	}
}

// readyParams are the parameters of ready.
var readyParams = []string{"queue", "version", "capability", "wait"}

// ready answers whether a job could be claimed now, and waits for that as long as the client wishes.
func (m *Room) ready(w http.ResponseWriter, r *http.Request, c Caller) error {
	params, err := query(r, readyParams...)
	if err != nil {
		return err
	}
	request := commands.ClaimRequest{Queues: params["queue"], Version: params.Get("version"),
		Capabilities: params["capability"], Worker: event.Worker{Name: "x", Boot: "x"}}
	err = cmp.Or(request.Check(), commands.ReservedLabel("capability", request.Capabilities))
	if err != nil {
		return err
	}
	if err := mayUse(c, access.Work, request.Queues...); err != nil {
		return err
	}
	var wait time.Duration
	if text := params.Get("wait"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return &commands.InvalidError{Field: "wait", Got: text, Allowed: "0 to 60 seconds"}
		}
		if wait, err = waitOf(seconds); err != nil {
			return err
		}
	}
	m.Busy()
	answer := wire.Ready{}
	var next time.Time
	if wait > 0 {
		end, err := m.begin(c)
		if err != nil {
			return err
		}
		defer end()
		if err := lasting(w, wait); err != nil {
			return err
		}
	}
	woken, leave := m.hub.join(request)
	defer leave()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for done := false; ; {
		if answer.Ready, next, err = m.Service.Ready(r.Context(), request); err != nil {
			return err
		}
		if answer.Ready || done || wait == 0 {
			answer.Next = words.TimeOrNull(next)
			return m.send(w, r, http.StatusOK, answer)
		}
		select {
		case <-woken:
		case <-timer.C:
			done = true
		case <-m.Closing:
			done = true
		case <-r.Context().Done():
			return context.Canceled
		}
	}
}
