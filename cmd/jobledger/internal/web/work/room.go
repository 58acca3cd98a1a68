package work

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Limits of concurrent requests, and of one request.
const (
	MaxWaiting      = 1024 // claims that wait, in all, as servers have it
	MaxWaitingGrant = 64   // of one token
	MaxWriting      = 512  // requests that write, under way or queued
	MaxTokens       = 100  // of one claim
	MaxOps          = 1000 // outcomes and heartbeats of one request
	MaxJobs         = 1000 // of one request
	MaxBody         = 8 << 20
	MaxOne          = 3 << 19 // bytes of one job or one outcome: 1.5 MiB

	maxBodies      = 12       // large bodies that are in memory, in all
	maxBodiesGrant = 4        // of one token
	largeBody      = 64 << 10 // bytes, from which on, or of unknown length, a body is large
)

// Caller is who asks.
type Caller = door.Caller

// Config says what a Room works on.
type Config struct {
	Service *commands.Service
	Now     func() time.Time
	Closing <-chan struct{} // closed when the server begins to end
	Report  func(format string, args ...any)
	Prefix  door.Prefix // of the addresses in answers
	Busy    func()      // called when a worker is there: expired leases are to be swept from then on

	MostWaiting int // claims that wait, in all
}

// Room answers producers and workers. It is safe for concurrent use.
type Room struct {
	Config
	hub     hub
	turns   turns
	known   known
	writing chan struct{}
	bodies  bodies

	arriving atomic.Int64 // requests whose body was read, and that are about to write

	mu      sync.Mutex
	waiting map[string]int                        // by the actor
	all     int                                   // of them
	started map[event.Worker]*event.WorkerStarted // what processes said; nil: nothing
	coming  sync.Mutex                            // one process is announced at a time
}

// New returns a room.
func New(c Config) *Room {
	r := &Room{Config: c, writing: make(chan struct{}, MaxWriting), waiting: make(map[string]int),
		started: make(map[event.Worker]*event.WorkerStarted)}
	r.hub.service = c.Service
	if c.Service.Store != nil {
		c.Service.Store.SetComing(r.arriving.Load)
	}
	return r
}

// Routes are what it answers.
func (m *Room) Routes() []door.Route {
	var routes []door.Route
	add := func(pattern string, needs door.Right, most int64,
		handle func(http.ResponseWriter, *http.Request, Caller) error, doc door.Doc) {
		routes = append(routes, door.Route{Pattern: pattern, Needs: needs, MaxBody: most, Queues: true,
			Streams: true, // it may wait, or be read slowly, and limits itself
			Handle: func(w http.ResponseWriter, r *http.Request) error {
				a := &arrival{ResponseWriter: w, room: m}
				defer arrived(a)
				defer a.forget()
				return handle(a, r, door.CallerOf(r.Context()))
			}, Doc: doc})
	}
	prefer, conflict := []string{"Prefer"}, []int{http.StatusConflict, http.StatusUnprocessableEntity}
	lost := []int{http.StatusConflict, http.StatusGone}
	enqueued := map[int]string{201: "The new job.", 200: "It was there before."}
	add("POST "+wire.Root+"/jobs", door.Enqueue, MaxBody, m.enqueue, door.Doc{ID: "enqueueJobs",
		Summary: "Enqueues a job, or one for each line, all or none. The names are those of enqueue --jsonl.",
		Headers: []string{"Prefer", "Idempotency-Key", "traceparent"}, Body: commands.Enqueue{},
		Line: `{"queue": "mail", "payload": {"b": 1}}`,
		Example: `{"queue": "mail", "payload": "hello", "key": "order-17", "tags": {"customer": "17"},
			"delay": "10s"}`,
		Answer: []any{enqueuedJSON{}, wire.Minimal{}, items[either[enqueuedJSON]]{}}, Refuses: conflict,
		Says: map[int]string{201: "The new job; a list if lines were sent.",
			200: "All were there before, with the same content."}})
	add("PUT "+wire.Root+"/jobs/{job}", door.Enqueue, MaxBody, m.put, door.Doc{ID: "putJob",
		Summary: "Enqueues a job with this id, once.", Headers: prefer, Body: commands.Enqueue{},
		Example: `{"queue": "mail", "payload": "hello"}`, Answer: []any{enqueuedJSON{}, wire.Minimal{}},
		Says: enqueued, Refuses: conflict})
	add("POST "+wire.Root+"/queues/{queue}/jobs", door.Enqueue, MaxBody, m.enqueueRaw, door.Doc{
		ID: "enqueuePayload", Summary: "Enqueues a job whose payload is the body, to the byte.", Headers: prefer,
		Query: rawParams, Example: "any bytes", Answer: []any{enqueuedJSON{}, wire.Minimal{}}, Says: enqueued,
		Refuses: conflict})
	add("POST "+wire.Root+"/claims", door.Work, MaxBody, m.claims, door.Doc{ID: "claim", Headers: prefer,
		Summary: "A turn of a worker, in one transaction: how claims ended, heartbeats, and new claims, one " +
			"for each " +
			"token. Sent again with the same tokens while they live, the answer is the same. Without outcomes and " +
			"heartbeats it waits as long as wait says for a job to be ready.",
		Body: wire.Claims{}, Example: `{"queues": ["mail"], "worker": "py-7", "boot": "01KDXYZAF8000000000000B00T",
			"host": "web3", "pid": 811, "version": "v2", "capabilities": ["gpu"],
			"tokens": ["01KDXYZAF800000000000000T1"], "lease": 60, "wait": 0}`,
		Answer: turnAnswer{}, Refuses: []int{http.StatusConflict}, Says: map[int]string{204: "No job was ready.",
			200: "The new claims, with payloads, and what became of the rest."}})
	add("GET "+wire.Root+"/claims", door.Work, 0, m.held, door.Doc{ID: "listHeldClaims", Headers: prefer,
		Summary: "The claims that a process holds, with tokens and payloads.", Query: []string{"boot"},
		Answer: items[either[claimJSON]]{}, Says: map[int]string{200: "The claims."}})
	add("GET "+wire.Root+"/claims/ready", door.Work, 0, m.ready, door.Doc{ID: "waitForReady",
		Summary: "Whether a job could be claimed; waits for that.", Query: readyParams, Answer: wire.Ready{},
		Says: map[int]string{200: "The answer."}})
	add("PUT "+wire.Root+"/jobs/{job}/claims/{token}", door.Work, MaxBody, m.outcome, door.Doc{ID: "endClaim",
		Summary: "Says how a claim ended, once: the same again has the same answer, another content is a conflict.",
		Headers: prefer, Body: wire.Outcome{}, Example: `{"outcome": "succeeded", "result": "sent"}`,
		Answer: []any{ownedJSON{}, wire.Minimal{}}, Says: map[int]string{200: "The job after it."}, Refuses: lost})
	add("PUT "+wire.Root+"/jobs/{job}/claims/{token}/process", door.Work, MaxOne, m.takeOver, door.Doc{
		ID: "takeOverClaim", Summary: "Another process goes on with the claim.", Headers: prefer,
		Body: wire.TakeOver{}, Answer: []any{claimJSON{}, wire.Minimal{}}, Refuses: lost,
		Example: `{"worker": "py-7", "boot": "01KDXYZAF8000000000000B002", "host": "web3", "pid": 812}`,
		Says:    map[int]string{200: "The claim."}})
	add("POST "+wire.Root+"/heartbeats", door.Work, MaxBody, m.heartbeats, door.Doc{ID: "heartbeat",
		Summary: "Extends the leases of a process, in one transaction. lost are claims on which the work must " +
			"stop, " +
			"unknown those of the process that the request did not name.",
		Body: wire.Heartbeats{}, Example: `{"boot": "01KDXYZAF8000000000000B00T", "lease": 60, "claims": [
			{"job": "01KDXYZAF8000000000000000J", "token": "01KDXYZAF800000000000000T1", "progress": 0.4,
			"note": "page 4 of 10"}]}`,
		Answer: beatsJSON{}, Says: map[int]string{200: "What became of them."}})
	add("PUT "+wire.Root+"/workers/{boot}", door.Work, MaxOne, m.comes, door.Doc{ID: "startWorker",
		Summary: "A worker process has started, or with again is still there; every 15 s is enough.",
		Body:    wire.Worker{}, Example: `{"worker": "py-7", "host": "web3", "pid": 811, "version": "v2",
			"queues": ["mail"], "capabilities": ["gpu"]}`,
		Answer: wire.Process{}, Says: map[int]string{201: "It is recorded.", 200: "It was recorded before."}})
	add("DELETE "+wire.Root+"/workers/{boot}", door.Work, 0, m.goes, door.Doc{ID: "stopWorker",
		Summary: "A worker process has ended in an orderly way.",
		Says:    map[int]string{204: "It is recorded, now or before."}})
	return routes
}

// arrival is an answer to a request that may be counted as arriving.
type arrival struct {
	http.ResponseWriter
	room    *Room
	counted bool
	large   string // of whose large body this is; "": it has none
}

// hold waits until there is room for one more large body of who, and forget gives that back.
func (a *arrival) hold(ctx context.Context, who string) error {
	err := a.room.bodies.take(ctx, who)
	if err == nil {
		a.large = who
	}
	return err
}

func (a *arrival) forget() {
	if a.large != "" {
		a.room.bodies.give(a.large)
		a.large = ""
	}
}

// Unwrap is for [http.ResponseController].
func (a *arrival) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// arrives takes in that the request is about to write: a transaction waits for it.
func arrives(w http.ResponseWriter) {
	if a, ok := w.(*arrival); ok && !a.counted {
		a.counted = true
		a.room.arriving.Add(1)
	}
}

// arrived takes in that the request writes now, or waits for something else, or has ended.
func arrived(w http.ResponseWriter) {
	if a, ok := w.(*arrival); ok && a.counted {
		a.counted = false
		a.room.arriving.Add(-1)
	}
}

// refusal is an error of a request before any command ran.
func refusal(status int, code, detail string) error { return door.Refusal(status, code, detail) }

// writeTime is how long one request writes.
const writeTime = 20 * time.Second

// posHeader names a position that an answer includes.
const posHeader = "Jobledger-Pos"

// write runs fn, and names its position, unless too many requests write already. The context of fn does not
// end when the client goes: then it would not be known what was done.
func (m *Room) write(w http.ResponseWriter, r *http.Request, fn func(context.Context) error) (err error) {
	select {
	case m.writing <- struct{}{}:
		defer func() { <-m.writing }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), writeTime)
		defer cancel()
		arrived(w)
		if err = fn(ctx); err == nil {
			if pos := m.Service.Store.Written(); pos > 0 {
				w.Header().Set(posHeader, strconv.FormatInt(pos, 10))
			}
		}
		return err
	default:
		return refusal(http.StatusServiceUnavailable, "busy", "too many requests write at the same time")
	}
}

// begin counts a request that waits; end must be called after it.
func (m *Room) begin(c Caller) (end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all >= m.MostWaiting || m.waiting[c.Actor] >= MaxWaitingGrant {
		return nil, refusal(http.StatusTooManyRequests, "rate", "too many requests wait at the same time")
	}
	m.all++
	m.waiting[c.Actor]++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.all--
		if m.waiting[c.Actor]--; m.waiting[c.Actor] == 0 {
			delete(m.waiting, c.Actor)
		}
	}, nil
}

// Waiting returns how many requests wait.
func (m *Room) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

// mayUse returns an error unless c has the scope for all of these queues.
func mayUse(c Caller, scope access.Scope, queues ...string) error {
	for _, q := range queues {
		if err := commands.CheckQueue(q); err != nil {
			return err
		}
		if !c.May(scope, q) {
			return refusal(http.StatusForbidden, "forbidden", "the token is not for the queue "+q)
		}
	}
	return nil
}

// jobs reads the jobs with these ids. A job of a queue that c may not use is treated as missing:
// commands.ErrNoJob, as for the outcome of a command. Where c is for all queues and rows is false, nothing is
// read.
func (m *Room) jobs(ctx context.Context, c Caller, ids []event.JobID, rows bool) (
	found map[event.JobID]projection.Job, err error) {
	if c.AllQueues() && !rows {
		return nil, nil
	}
	err = m.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		found = make(map[event.JobID]projection.Job, len(ids))
		for _, id := range ids {
			if commands.CheckText("job", string(id), commands.MaxKey) != nil {
				continue
			}
			j, ok, err := projection.Get(ctx, tx, id)
			if err != nil {
				return err
			}
			if ok && c.Queue(j.Queue) {
				found[id] = j
			}
		}
		return nil
	})
	return found, err
}
