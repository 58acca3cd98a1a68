package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// traceEvent is one entry of Chrome's trace format. Numbers that JavaScript could round stand as strings in args.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    int64          `json:"ts"` // µs since 1970
	Dur   *int64         `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s,omitempty"`
	ID    string         `json:"id,omitempty"` // of an arrow: a hexadecimal number, or Perfetto does not take it
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// operators is the lane of what people did.
const operators = 1

// tracer writes a trace while the ledger is walked. What the format calls a process is a worker process, and its
// threads are the places of those jobs that it had at the same time, because slices of one thread must not overlap.
type tracer struct {
	out    *bufio.Writer
	within stretch
	first  bool
	lanes  map[ledger.Worker]*traceLane
	places map[int64]place // of the live claims, by the job's number
	last   map[int64]place // where the latest claim was that ended, of jobs that go on
	at     time.Time       // of the last event
}

type traceLane struct {
	pid   int
	taken []bool // the places
	named []bool // told already
}

type place struct {
	lane  *traceLane
	slot  int
	claim *projection.Claim
}

// exportTrace writes the claims that were live within s.
func exportTrace(ctx context.Context, service *commands.Service, s stretch, out io.Writer) error {
	t := &tracer{out: bufio.NewWriterSize(out, 64<<10), within: s, first: true, lanes: make(map[ledger.Worker]*traceLane),
		places: make(map[int64]place), last: make(map[int64]place)}
	fmt.Fprint(t.out, `{"displayTimeUnit":"ms","traceEvents":[`)
	t.write(traceEvent{Name: "process_name", Phase: "M", PID: operators, Args: map[string]any{"name": "operators"}})
	err := walkClaims(ctx, service, s, t.watch, t.slice)
	if err != nil {
		return err
	}
	fmt.Fprint(t.out, "\n]}\n")
	return t.out.Flush()
}

// write keeps the first error for Flush, as its writer does.
func (t *tracer) write(e traceEvent) {
	text, err := json.Marshal(e)
	if err != nil { // cannot be: there is nothing in it that JSON does not know
		text = []byte("null")
	}
	if !ascii(text) {
		text = jsonEscape(text)
	}
	if !t.first {
		_ = t.out.WriteByte(',')
	}
	t.first = false
	_ = t.out.WriteByte('\n')
	_, _ = t.out.Write(text)
}

// watch gives each claim its place when it begins, and notes what happens at one moment.
func (t *tracer) watch(e ledger.Event, claim *projection.Claim) error {
	t.at = e.At
	if e.Kind() == ledger.KindClaimed {
		lane := t.lane(e.Worker)
		slot := slices.Index(lane.taken, false)
		if slot < 0 {
			slot = len(lane.taken)
			lane.taken, lane.named = append(lane.taken, false), append(lane.named, false)
		}
		lane.taken[slot] = true
		t.places[e.N] = place{lane, slot, claim}
	}
	switch {
	case claim != nil && claim.End != nil && !t.within.touches(claim):
		t.leave(claim) // it is not drawn, but the next one may be
	case claim == nil && e.To.Final():
		delete(t.last, e.N)
	}
	if e.Pos > t.within.after {
		t.instant(e)
	}
	return nil
}

func (t *tracer) lane(w ledger.Worker) *traceLane {
	lane := t.lanes[w]
	if lane == nil {
		lane = &traceLane{pid: operators + 1 + len(t.lanes)}
		t.lanes[w] = lane
	}
	return lane
}

// leave frees the place of a claim that has ended.
func (t *tracer) leave(claim *projection.Claim) place {
	at := t.places[claim.N]
	delete(t.places, claim.N)
	at.lane.taken[at.slot] = false
	if claim.End.To.Final() {
		delete(t.last, claim.N)
	} else {
		t.last[claim.N] = at
	}
	return at
}

// slice draws a claim, and an arrow to it from the one before if that was another worker's.
func (t *tracer) slice(claim *projection.Claim) error {
	before, handed := t.last[claim.N]
	at, until := t.places[claim.N], t.at
	end := endOf(claim)
	outcome := any(nil)
	if claim.End != nil {
		t.leave(claim)
		until, outcome = end.at, end.outcome
	}
	t.name(at, claim.Worker)
	begun := ledger.Micros(claim.ClaimedAt)
	took := ledger.Micros(until) - begun
	args := map[string]any{"job": claim.Job, "attempt": claim.Attempt, "queue": claim.Queue, "pos": strconv.FormatInt(claim.Pos, 10),
		"claimed_at": jsonTime(claim.ClaimedAt), "lease_until": jsonTime(claim.LeaseUntil), "heartbeats": claim.Heartbeats, "outcome": outcome}
	for name, value := range map[string]string{"last_heartbeat": timeOrEmpty(claim.LastHeartbeat), "ended_at": timeOrEmpty(end.at),
		"exit_code": numberOrEmpty(end.exitCode), "signal": end.signal, "error_code": end.errorCode} {
		if value != "" {
			args[name] = value
		}
	}
	t.write(traceEvent{Name: claim.Queue, Cat: "claim", Phase: "X", TS: begun, Dur: &took, PID: at.lane.pid, TID: at.slot + 1, Args: args})
	if handed && before.claim.Worker != claim.Worker && t.within.touches(before.claim) {
		left := ledger.Micros(before.claim.End.At)
		if left > ledger.Micros(before.claim.ClaimedAt) {
			left-- // still within its slice
		}
		id := strconv.FormatInt(claim.Pos, 16)
		t.write(traceEvent{Name: "handed over", Cat: "job", Phase: "s", TS: left, PID: before.lane.pid, TID: before.slot + 1, ID: id})
		t.write(traceEvent{Name: "handed over", Cat: "job", Phase: "f", TS: begun, PID: at.lane.pid, TID: at.slot + 1, ID: id, Bind: "e"})
	}
	return nil
}

// name tells what a lane is before the first thing on it.
func (t *tracer) name(at place, w ledger.Worker) {
	if at.lane.named[at.slot] {
		return
	}
	if !slices.Contains(at.lane.named, true) {
		t.write(traceEvent{Name: "process_name", Phase: "M", PID: at.lane.pid, Args: map[string]any{"name": w.Name}})
		t.write(traceEvent{Name: "process_labels", Phase: "M", PID: at.lane.pid, Args: map[string]any{"labels": fmt.Sprintf("%s, boot %s", process(w), w.Boot)}})
	}
	at.lane.named[at.slot] = true
	t.write(traceEvent{Name: "thread_name", Phase: "M", PID: at.lane.pid, TID: at.slot + 1, Args: map[string]any{"name": fmt.Sprintf("job %d", at.slot+1)}})
}

// instant marks a refused write on its worker's lane, and what operators did on theirs.
func (t *tracer) instant(e ledger.Event) {
	mark := traceEvent{Name: e.Kind().String(), Cat: "moment", Phase: "i", TS: ledger.Micros(e.At), PID: operators, TID: 1, Scope: "t",
		Args: map[string]any{"pos": strconv.FormatInt(e.Pos, 10), "actor": e.Actor}}
	if e.Job != "" {
		mark.Args["job"] = e.Job
	}
	switch b := e.Body.(type) {
	case *ledger.Refused:
		mark.Args["command"], mark.Args["why"], mark.Args["attempt"] = b.Command, b.Why, e.Attempt
		if lane := t.lanes[e.Worker]; lane != nil && len(lane.taken) > 0 {
			t.name(place{lane: lane}, e.Worker)
			mark.PID = lane.pid
		}
	case *ledger.QueuePaused:
		mark.Args["queue"], mark.Args["reason"] = b.Queue, b.Reason
	case *ledger.QueueResumed:
		mark.Args["queue"], mark.Args["reason"] = b.Queue, b.Reason
	case *ledger.Cancelled:
		mark.Args["reason"] = b.Reason
	case *ledger.Retried:
		mark.Args["reason"] = b.Reason
	case *ledger.Rescheduled:
		mark.Args["reason"] = b.Reason
	case *ledger.Erased:
		mark.Args["reason"] = b.Reason
	case *ledger.Rebuilt, *ledger.Restored, *ledger.Imported:
	default:
		return
	}
	t.write(mark)
}
