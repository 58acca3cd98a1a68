package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// Middleware wraps a Handler: it may do something before and after, change the context, or end the job
// itself. [JobOf] works in it. A panic passes through it unless it recovers.
type Middleware func(Handler) Handler

// Mux is a Handler that passes each job to the Handler of its queue. The zero value has none. It is safe for
// concurrent use; a running job keeps the Handler that it began with.
//
// A Worker whose Handler is a Mux and whose Queues are empty works on the queues of the Mux.
type Mux struct {
	mu       sync.RWMutex
	handlers map[string]Handler // as registered
	wrapped  map[string]Handler // within the middleware of all queues
	all      []Middleware
}

// Handle registers the Handler of a queue, within the given middleware, of which the first is the outermost.
// It panics if the name of the queue is not valid, if the queue has a Handler, or if h is nil: these are
// mistakes of the program.
func (m *Mux) Handle(queue string, h Handler, with ...Middleware) {
	if err := commands.CheckQueue(queue); err != nil {
		panic(fmt.Sprintf("worker: %v", err))
	}
	if f, ok := h.(HandlerFunc); h == nil || ok && f == nil {
		panic("worker: the handler of the queue " + queue + " is nil")
	}
	checkMiddleware(with)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handlers[queue] != nil {
		panic("worker: the queue " + queue + " has a handler already")
	}
	if m.handlers == nil {
		m.handlers, m.wrapped = make(map[string]Handler), make(map[string]Handler)
	}
	m.handlers[queue] = wrap(h, with)
	m.wrapped[queue] = wrap(m.handlers[queue], m.all)
}

// HandleFunc is Handle for a function over plain bytes.
func (m *Mux) HandleFunc(queue string, f HandlerFunc, with ...Middleware) {
	m.Handle(queue, f, with...)
}

// Use adds middleware around the Handlers of all queues, including those that were registered before. The
// first is the outermost. It panics if one is nil.
func (m *Mux) Use(with ...Middleware) {
	checkMiddleware(with)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(slices.Clip(m.all), with...)
	for queue, h := range m.handlers {
		m.wrapped[queue] = wrap(h, m.all)
	}
}

// Queues returns the queues that have a Handler, sorted.
func (m *Mux) Queues() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.handlers))
}

// Work calls the Handler of the job's queue. Without one the attempt fails with the code no_handler.
func (m *Mux) Work(ctx context.Context, job projection.Job) ([]byte, error) {
	m.mu.RLock()
	h := m.wrapped[job.Queue]
	m.mu.RUnlock()
	if h == nil {
		return nil, &Error{Code: "no_handler", Detail: "this worker has no handler for the queue " + job.Queue}
	}
	return h.Work(ctx, job)
}

func checkMiddleware(with []Middleware) {
	if slices.ContainsFunc(with, func(w Middleware) bool { return w == nil }) {
		panic("worker: a middleware is nil")
	}
}

func wrap(h Handler, with []Middleware) Handler {
	for _, w := range slices.Backward(with) {
		h = w(h)
	}
	return h
}

// queuesOf sets the Queues of w if its Handler knows them.
func (w *Worker) queuesOf() error {
	m, ok := w.Handler.(*Mux)
	if !ok {
		return nil
	}
	known := m.Queues()
	if len(w.Queues) == 0 {
		w.Queues = known
	}
	for _, queue := range w.Queues {
		if !slices.Contains(known, queue) {
			return fmt.Errorf("worker: the queue %q has no handler; these have: %q", queue, known)
		}
	}
	return nil
}

// Job is a job whose payload is the JSON of a T.
type Job[T any] struct {
	projection.Job
	Args T // the payload, decoded; of an empty payload the zero T
}

// Handle registers f as the Handler of a queue; see [Typed] and [Mux.Handle].
func Handle[T any](
	m *Mux, queue string, f func(ctx context.Context, job Job[T]) (result any, err error), with ...Middleware,
) {
	if f == nil {
		panic("worker: the handler of the queue " + queue + " is nil")
	}
	m.Handle(queue, Typed(f), with...)
}

// Typed returns a Handler that decodes the payload from JSON and encodes the result of f to JSON. Where T is
// []byte the payload is passed on as it is; a result of []byte or json.RawMessage is stored as it is, and nil
// stores none. Fields that T does not have are ignored, as [json.Unmarshal] does.
//
// A payload that is not the JSON of a T fails the job for good, with the code bad_payload, and f is not
// called. A result that has no JSON fails the attempt with the code invalid_end.
func Typed[T any](f func(ctx context.Context, job Job[T]) (result any, err error)) Handler {
	return HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
		typed := Job[T]{Job: job}
		if raw, ok := any(&typed.Args).(*[]byte); ok {
			*raw = job.Payload
		} else if len(job.Payload) > 0 {
			if err := json.Unmarshal(job.Payload, &typed.Args); err != nil {
				return nil, &Error{Code: "bad_payload", NoRetry: true, Err: err}
			}
		}
		result, err := f(ctx, typed)
		if err != nil {
			return nil, err
		}
		return encode(result)
	})
}

func encode(result any) ([]byte, error) {
	switch r := result.(type) {
	case nil:
		return nil, nil
	case []byte:
		return r, nil
	case json.RawMessage:
		return r, nil
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, &Error{Code: "invalid_end", Err: err}
	}
	return text, nil
}

// RetryBy returns middleware that sets when a failed attempt is tried again. policy gets the job, with the
// failures before this one in Failures, and the error; a panic is an error. It returns how long to wait, up
// to 366 days: 0 is the job's own backoff, and less than 0 never. It is not asked about [Snooze], [Cancel],
// or an [Error] with RetryIn or NoRetry. MaxAttempts holds in any case.
func RetryBy(policy func(job projection.Job, err error) time.Duration) Middleware {
	return func(h Handler) Handler {
		return HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
			result, err := safely(ctx, h, job)
			if err == nil || decided(err) {
				return result, err
			}
			switch d := policy(job, err); {
			case d < 0:
				return nil, Permanent(err)
			case d > 0:
				return nil, &Error{RetryIn: d, Err: err}
			}
			return nil, err
		})
	}
}
