package hook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// maxAttempts is how often a delivery is tried, over a day.
const maxAttempts = 24

// backoff is how long a delivery waits after each of its failures.
var backoff = event.Backoff{Min: 5 * time.Second, Max: 2 * time.Hour, Factor: 2}

// A receiver that does not answer well is left alone for a while, and then gets one request.
const (
	longestRest = 5 * time.Minute
	deadAfter   = 10 // failures without a success: a delivery that then fails for good pauses the queue
)

var firstRest = time.Second // tests shorten it

// drainFor is how long a request under way may take when the dispatcher ends.
const drainFor = 5 * time.Second

// deliverer sends the deliveries of one endpoint.
type deliverer struct {
	service *commands.Service
	sender  *sender
	source  string
	process event.Worker
	report  func(format string, args ...any)

	failures int       // since the last success
	rest     time.Time // no request before
	ended    []commands.Op
}

func (d *deliverer) endpoint() Endpoint { return d.sender.endpoint }

func (d *deliverer) actor() string { return "worker:" + d.process.Name }

// request claims as many deliveries as are sent at a time. No heartbeat is needed: a request takes half of
// the lease at most.
func (d *deliverer) request() commands.ClaimRequest {
	limit := d.endpoint().Parallel
	if d.failures > 0 {
		limit = 1
	}
	return commands.ClaimRequest{Queues: []string{d.endpoint().Queue()}, Worker: d.process, Limit: limit,
		Lease: max(2*d.endpoint().Timeout, commands.MinLease)}
}

// step sends until no delivery is ready, the receiver is to be left alone, or ctx ends. next is when there
// may be another one; zero: it is not known.
func (d *deliverer) step(ctx context.Context) (next time.Time, err error) {
	for {
		if ctx.Err() != nil || time.Now().Before(d.rest) {
			return d.rest, d.record(ctx)
		}
		if len(d.ended) == 0 {
			ready, next, err := d.service.Ready(ctx, d.request())
			if err != nil || !ready {
				return next, err
			}
		}
		results, jobs, err := d.service.ApplyAndClaim(ctx, d.actor(), d.ended, d.request())
		if err != nil {
			return next, err
		}
		if err := d.recorded(ctx, results); err != nil {
			return next, err
		}
		if len(jobs) == 0 {
			return next, nil
		}
		d.send(ctx, jobs)
	}
}

// record records how the claims ended, even when ctx has ended.
func (d *deliverer) record(ctx context.Context) error {
	if len(d.ended) == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	results, err := d.service.ApplyBatch(within, d.actor(), d.ended)
	if err != nil {
		return err
	}
	return d.recorded(within, results)
}

// recorded pauses the queue if a delivery has failed for good and the receiver seems dead.
func (d *deliverer) recorded(ctx context.Context, results []commands.Result) error {
	ended := d.ended
	d.ended = nil
	for i, r := range results {
		fail, failed := ended[i].Command.(commands.Fail)
		if failed && !fail.NoRetry && r.Err == nil && r.Job.State == event.FailedState && d.failures >= deadAfter {
			return d.pause(ctx, fmt.Sprintf("delivery %s has failed %d times, the last time with %s: retry it, and "+
				"then resume", r.Job.ID, r.Job.Failures, fail.Code))
		}
	}
	return nil
}

func (d *deliverer) pause(ctx context.Context, why string) error {
	changed, err := d.service.Pause(ctx, "webhook:"+d.endpoint().Name, d.endpoint().Queue(), why)
	if changed {
		d.report("webhook %s: paused: %s", d.endpoint().Name, why)
	}
	return err
}

// send sends jobs at the same time.
func (d *deliverer) send(ctx context.Context, jobs []projection.Job) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-sending.Done():
		case <-time.After(drainFor):
			cancel()
		}
	})
	defer stop()
	answers := make([]Answer, len(jobs))
	d.ended = make([]commands.Op, len(jobs))
	var all sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() { answers[i], d.ended[i].Command = d.deliver(sending, j) })
		d.ended[i].Job = j
	}
	all.Wait()
	for _, a := range answers {
		switch {
		case a.Status == 0 && a.Code == "": // nothing was sent
		case a.OK():
			if d.failures > 0 {
				d.report("webhook %s: the receiver answers again", d.endpoint().Name)
			}
			d.failures, d.rest = 0, time.Time{}
		default:
			if d.failures == 0 {
				d.report("webhook %s: %s: %s", d.endpoint().Name, a.Code, a.Detail)
			}
			rest := min(firstRest<<min(d.failures, 16), longestRest)
			rest = max(a.Wait, rest*3/4+rand.N(rest/2)) // #nosec G404 -- so that not all come at once
			d.failures++
			d.rest = time.Now().Add(rest)
		}
		if a.Gone() {
			if err := d.pause(ctx, "the receiver at "+d.endpoint().Host()+" answered 410 Gone"); err != nil {
				d.report("webhook %s: %v", d.endpoint().Name, err)
			}
		}
	}
}

// deliver sends one delivery, and returns how its claim ends.
func (d *deliverer) deliver(ctx context.Context, j projection.Job) (a Answer, end commands.Command) {
	body, why, err := d.body(ctx, j)
	switch {
	case err != nil:
		return a, commands.Release{Token: j.Token, Reason: "the event could not be read", Delay: time.Second}
	case why != "":
		return a, commands.Cancel{Token: j.Token, Reason: why}
	}
	a = d.sender.send(ctx, j.Key, body)
	switch {
	case a.OK():
		return a, commands.Succeed{Token: j.Token}
	case ctx.Err() != nil:
		return Answer{}, commands.Release{Token: j.Token, Reason: "serve has ended"}
	}
	fail := commands.Fail{Token: j.Token, Code: a.Code, Detail: commands.Detail(a.Detail)}
	if a.Wait > 0 {
		fail.RetryIn = new(max(a.Wait, backoff.Wait(j.Failures+1)))
	}
	return a, fail
}

// body is what to send for j; why says why not. Another program may have enqueued j, so it is sent only if
// its event is one that the endpoint gets.
func (d *deliverer) body(ctx context.Context, j projection.Job) (body []byte, why string, err error) {
	err = d.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		body, why = nil, ""
		var id string
		x, found, err := tx.EventAt(ctx, PosOf(j.Key))
		if err == nil && found {
			id, err = IDOf(x)
		}
		if err != nil {
			return err
		}
		if !found || id != j.Key {
			why = "the ledger has no such event: it was removed, or the job is not a delivery"
			return nil
		}
		queue, trace := event.Said(x.Body, "queue"), ""
		if x.N != 0 {
			about, err := jobsOf(ctx, tx, []event.Event{x})
			if err != nil {
				return err
			}
			queue, trace = about[x.N].Queue, about[x.N].Tags[worker.TraceTag]
		}
		if !worker.IsTraceparent(trace) {
			trace = ""
		}
		if !d.endpoint().selects(x, queue) {
			why = "the webhook does not get such events"
			return nil
		}
		body, err = newMessage(d.source, id, x, queue, trace)
		return err
	})
	return body, why, err
}
