package lineartest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// client makes one call after another.
type client struct {
	api    linearAPI
	name   string
	clock  linearClock
	report *linearReport
	rng    *rand.Rand
	jobs   []event.JobID // by number; empty: not known yet
	copies []projection.Job
	tokens [][]string // the tokens it has seen, by job
	lease  time.Duration
	last   linearRecord // the beginning of the last call
}

func newClient(api linearAPI, name string, clock linearClock, report *linearReport, jobs int,
	seed uint64) *client {
	return &client{api: api, name: name, clock: clock, report: report, rng: rand.New(rand.NewPCG(seed, 1)),
		jobs: make([]event.JobID, jobs), copies: make([]projection.Job, jobs), tokens: make([][]string, jobs),
		lease: time.Second}
}

// run makes random calls.
func (h *client) run(ctx context.Context, calls int) error {
	for range calls {
		if err := h.next(ctx); err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return nil
}

func (h *client) next(ctx context.Context) error {
	n := h.rng.IntN(len(h.jobs))
	if h.jobs[n] == "" || h.rng.IntN(40) == 0 {
		return h.enqueue(ctx, n)
	}
	switch draw := h.rng.IntN(100); {
	case draw < 30:
		return h.claim(ctx, []int{n}, 1)
	case draw < 35:
		return h.claim(ctx, h.known(), 1+h.rng.IntN(3))
	case draw < 42:
		return h.sweep(ctx)
	case draw < 50:
		return h.do(ctx, n, linearCall{Op: "get"}, nil)
	case draw < 52:
		return h.do(ctx, n, linearCall{Op: "cancel"}, commands.Cancel{})
	case draw < 62:
		return h.do(ctx, n, linearCall{Op: "retry"}, commands.Retry{})
	}
	return h.owner(ctx, n)
}

func (h *client) known() (jobs []int) {
	for n, id := range h.jobs {
		if id != "" {
			jobs = append(jobs, n)
		}
	}
	return jobs
}

// begin records a call that may concern these jobs.
func (h *client) begin(c linearCall, jobs ...int) int {
	c.After = h.clock.us()
	h.last = linearRecord{Client: h.name, At: monotonic(), Call: &c, Jobs: jobs}
	return h.report.write(h.last)
}

// resent reports whether the call that was begun last may have been carried out more than once, and records
// that: others with the same beginning, without an end.
func (h *client) resent() bool {
	api, ok := h.api.(resender)
	if !ok {
		return false
	}
	more := api.resent()
	for range more {
		h.report.write(h.last)
	}
	return more > 0
}

func (h *client) end(call int, answers ...linearAnswer) {
	at := monotonic()
	before := h.clock.us() + 1
	for i := range answers {
		answers[i].Before = before
	}
	h.report.write(linearRecord{N: call, At: at, Answers: answers})
}

// answer returns what is known of j now, and keeps its token.
func (h *client) answer(n int, j projection.Job, err error) (linearAnswer, error) {
	switch {
	case errors.Is(err, ledger.ErrUnknown):
		return linearAnswer{Job: n, Err: "unknown"}, nil
	case errors.Is(err, commands.ErrLeaseLost):
		return linearAnswer{Job: n, Err: "lost"}, nil
	case errors.Is(err, commands.ErrCancelled):
		return linearAnswer{Job: n, Err: "cancelled"}, nil
	case errors.Is(err, commands.ErrConflict):
		return linearAnswer{Job: n, Err: "conflict"}, nil
	case errors.Is(err, commands.ErrNoJob):
		return linearAnswer{Job: n, Err: "none"}, nil
	case err != nil:
		return linearAnswer{}, err
	}
	h.copies[n] = j
	if j.Token != "" && !slices.Contains(h.tokens[n], j.Token) {
		h.tokens[n] = append(h.tokens[n], j.Token)
	}
	_, outside := h.api.(resender)
	return linearAnswer{Job: n, State: j.State.String(), Token: j.Token, Untold: outside && j.Token == "",
		Seq: j.Seq, Attempt: j.Attempt, Failures: j.Failures, RunAt: event.Micros(j.RunAt),
		Lease: event.Micros(j.LeaseUntil)}, nil
}

func (h *client) enqueue(ctx context.Context, n int) error {
	payload := "p"
	if h.rng.IntN(20) == 0 {
		payload = "q"
	}
	call := h.begin(linearCall{Op: "enqueue", Content: payload}, n)
	e, err := h.api.enqueue(ctx, commands.Enqueue{Queue: fmt.Sprint("q", n), Key: "k", Payload: []byte(payload),
		MaxAttempts: linearMax})
	h.resent()
	if err == nil {
		h.jobs[n] = e.ID
	}
	a, err := h.answer(n, e.Job, err)
	a.Existing = e.Existing
	h.end(call, a)
	return err
}

// claim claims any of these jobs.
func (h *client) claim(ctx context.Context, of []int, limit int) error {
	r := commands.ClaimRequest{Worker: event.Worker{Name: h.name, Boot: h.name}, Lease: h.lease,
		Limit: limit}
	for _, n := range of {
		r.Queues = append(r.Queues, fmt.Sprint("q", n))
	}
	if len(of) == 0 {
		return nil
	}
	_, resends := h.api.(resender)
	if resends || h.rng.IntN(2) == 0 { // half of the claims are with tokens of the caller's making
		for range limit {
			r.Tokens = append(r.Tokens, ulid.Make().String())
		}
	}
	call := h.begin(linearCall{Op: "claim"}, of...)
	got, err := h.api.claim(ctx, r)
	if h.resent() { // the claims of the first time may have been given back, or have ended, which is a conflict
		h.begin(linearCall{Op: "given back", Tokens: r.Tokens}, of...)
		if errors.Is(err, commands.ErrConflict) {
			err = ledger.ErrUnknown
		}
	}
	var answers []linearAnswer
	if err != nil {
		a, err := h.answer(0, projection.Job{}, err)
		for _, a.Job = range of {
			answers = append(answers, a)
		}
		h.end(call, answers...)
		return err
	}
	var taken []int
	for _, j := range got {
		n := queueNumber(j)
		a, _ := h.answer(n, j, nil)
		answers, taken = append(answers, a), append(taken, n)
	}
	rest := "none" // there was nothing else
	if len(got) > 0 {
		rest = "unknown" // or it was looked up after an unknown commit, and was lost by then
	}
	for _, n := range of {
		if len(got) < limit && !slices.Contains(taken, n) {
			answers = append(answers, linearAnswer{Job: n, Err: rest})
		}
	}
	h.end(call, answers...)
	return nil
}

func queueNumber(j projection.Job) int {
	n, err := strconv.Atoi(strings.TrimPrefix(j.Queue, "q"))
	if err != nil {
		panic(err)
	}
	return n
}

func (h *client) sweep(ctx context.Context) error {
	all := make([]int, len(h.jobs))
	for n := range all {
		all[n] = n
	}
	call := h.begin(linearCall{Op: "sweep"}, all...)
	got, err := h.api.sweep(ctx)
	var answers []linearAnswer
	for _, j := range got {
		a, _ := h.answer(queueNumber(j), j, nil)
		answers = append(answers, a)
	}
	if errors.Is(err, ledger.ErrUnknown) { // an earlier batch is reported, the outcome of this one is unknown
		for _, n := range all {
			answers = append(answers, linearAnswer{Job: n, Err: "unknown"})
		}
		err = nil
	}
	h.end(call, answers...)
	return err
}

// do applies c to the job with this id, or reads the job if c is nil.
func (h *client) do(ctx context.Context, n int, c linearCall, command commands.Command) error {
	call := h.begin(c, n)
	var j projection.Job
	var err error
	if command == nil {
		j, err = h.api.get(ctx, h.jobs[n])
	} else {
		held := projection.Job{ID: h.jobs[n]}
		if h.rng.IntN(2) == 0 && h.copies[n].N != 0 {
			held = h.copies[n]
		}
		j, err = h.api.do(ctx, held, command)
		h.resent()
	}
	a, err := h.answer(n, j, err)
	h.end(call, a)
	return err
}

// owner picks one of the tokens that the client has seen, mostly the last one.
func (h *client) owner(ctx context.Context, n int) error {
	tokens := h.tokens[n]
	token := "never given"
	if len(tokens) > 0 {
		token = tokens[max(0, len(tokens)-1-h.rng.IntN(8)/6)]
	}
	content := oneOf(h.rng, "a", "a", "b")
	switch h.rng.IntN(6) {
	case 0, 1:
		return h.do(ctx, n, linearCall{Op: "heartbeat", Token: token},
			commands.Heartbeat{Token: token, Lease: h.lease})
	case 2, 3:
		return h.do(ctx, n, linearCall{Op: "succeed", Token: token, Content: content},
			commands.Succeed{Token: token, Result: []byte(content)})
	case 4:
		return h.do(ctx, n, linearCall{Op: "fail", Token: token, Content: content},
			commands.Fail{Token: token, Code: content, RetryIn: new(time.Duration)})
	}
	return h.do(ctx, n, linearCall{Op: "release", Token: token, Content: content},
		commands.Release{Token: token, Reason: content})
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
