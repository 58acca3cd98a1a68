package lineartest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// linearAPI is what clients can call. The program has one implementation; others are broken on purpose.
type linearAPI interface {
	enqueue(ctx context.Context, e commands.Enqueue) (commands.Enqueued, error)
	claim(ctx context.Context, r commands.ClaimRequest) ([]projection.Job, error)
	do(ctx context.Context, j projection.Job, c commands.Command) (projection.Job, error)
	sweep(ctx context.Context) ([]projection.Job, error)
	get(ctx context.Context, id event.JobID) (projection.Job, error)
}

// resender is an API whose calls may be carried out twice.
type resender interface {
	resent() int // how often, since it was asked last
}

// asIs is the program itself.
type asIs struct{ *commands.Service }

func (s asIs) enqueue(ctx context.Context, e commands.Enqueue) (commands.Enqueued, error) {
	jobs, err := s.Enqueue(ctx, "cli:test", e)
	if err != nil {
		return commands.Enqueued{}, err
	}
	return jobs[0], nil
}

func (s asIs) claim(ctx context.Context, r commands.ClaimRequest) ([]projection.Job, error) {
	return s.Claim(ctx, r)
}

// do uses the job's id if nothing else is known about it, and otherwise the copy j, which may be stale.
func (s asIs) do(ctx context.Context, j projection.Job, c commands.Command) (projection.Job, error) {
	if j.N == 0 {
		return s.Apply(ctx, "cli:test", j.ID, c)
	}
	out, err := s.ApplyBatch(ctx, "cli:test", []commands.Op{{Job: j, Command: c}})
	if err != nil {
		return projection.Job{}, err
	}
	return out[0].Job, out[0].Err
}

// sweeper is the actor of the clients' sweeps.
const sweeper = "sweeper:test"

// sweep reclaims jobs whose lease has expired by the common clock. It needs no grace, because no clock is
// wrong. It pauses between its read and its transaction, so that others can act.
func (s asIs) sweep(ctx context.Context) ([]projection.Job, error) {
	// The sleep interleaves the calls.
	ctx = commandstest.BeforeWrite{Context: ctx, Act: func() { time.Sleep(rand.N(3 * time.Millisecond)) }}
	w := commands.Sweeper{Service: s.Service, Actor: sweeper, Grace: new(time.Duration),
		Pause: time.Microsecond}
	r, err := w.Sweep(ctx)
	return r.Reclaimed, err
}

func (s asIs) get(ctx context.Context, id event.JobID) (j projection.Job, err error) {
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		var ok bool
		if j, ok, err = projection.Get(ctx, tx, id); err == nil && !ok {
			return commands.ErrNoJob
		}
		return err
	})
	return j, err
}

// linearClock is the clock of the ledger for all processes of one history. It runs fast, so that leases
// expire soon.
// microseconds since 1970, and the machine's monotonic nanoseconds then
type linearClock struct{ Begin, Mono int64 }

const linearSpeed = 30

func (c linearClock) us() int64 { return c.Begin + (monotonic()-c.Mono)*linearSpeed/1000 }

func (c linearClock) now() time.Time { return event.FromMicros(c.us()) }

// linearRecord is one line of a process's report: the beginning of a call, or its end with the answers about
// jobs.
type linearRecord struct {
	N       int
	Client  string         `json:",omitempty"`
	At      int64          // monotonic nanoseconds
	Call    *linearCall    `json:",omitempty"`
	Jobs    []int          `json:",omitempty"` // that the call may concern
	Answers []linearAnswer `json:",omitempty"` // a slow sweep may reclaim a job twice
}

// linearReport writes records. The beginning of a call is written before the call.
type linearReport struct {
	mu sync.Mutex
	to io.Writer
	n  int
}

func (r *linearReport) write(rec linearRecord) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.Call != nil {
		r.n++
		rec.N = r.n
	}
	line, err := json.Marshal(rec)
	if err == nil {
		_, err = r.to.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
	return rec.N
}

// operations turns a process's report into the history of each job. A call without an end has an unknown
// outcome; it ended at the latest with the process.
func operations(report []byte, gone int64, client int, into [][]porcupine.Operation,
	counts map[string]int) error {
	calls := make(map[int]linearRecord)
	lines := bufio.NewScanner(bytes.NewReader(report))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) {
			continue // other output of the test binary
		}
		var rec linearRecord
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			continue // the record was cut off by a kill
		}
		if rec.Call != nil {
			calls[rec.N] = rec
			continue
		}
		begin, ok := calls[rec.N]
		if !ok {
			return fmt.Errorf("an answer without a call: %s", lines.Text())
		}
		delete(calls, rec.N)
		for _, a := range rec.Answers {
			counts[strings.TrimSpace(begin.Call.Op+" "+a.Err)]++
			into[a.Job] = append(into[a.Job], porcupine.Operation{ClientId: client, Input: *begin.Call, Call: begin.At,
				Output: a, Return: rec.At, Metadata: begin.Client})
		}
	}
	for _, begin := range calls {
		counts["killed in "+begin.Call.Op]++
		for _, n := range begin.Jobs {
			into[n] = append(into[n], porcupine.Operation{ClientId: client, Input: *begin.Call, Call: begin.At,
				Output: linearAnswer{Err: "unknown"}, Return: gone, Metadata: begin.Client})
		}
	}
	return lines.Err()
}
