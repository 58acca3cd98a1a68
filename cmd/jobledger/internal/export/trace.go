package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// traceEvent is one entry of Chrome's trace format. Numbers in Args that JavaScript could round are strings.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	TS    int64          `json:"ts"` // µs since 1970
	Dur   *int64         `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Scope string         `json:"s,omitempty"`
	ID    string         `json:"id,omitempty"` // of an arrow: Perfetto accepts only a hexadecimal number
	Bind  string         `json:"bp,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// operators is the process number of the lane that shows what operators did.
const operators = 1

// tracer writes a trace in one pass over the ledger. A process of the trace format is a worker process.
// Slices of one thread must not overlap, so a worker's threads are slots: each job that it holds takes the
// lowest free one.
type tracer struct {
	out    *bufio.Writer
	first  bool // until the first entry is written
	lanes  map[event.Worker]*traceLane
	places map[int64]place // of the live claims, by the job's number
	last   map[int64]place // of the latest ended claim of each job that is not final, by the job's number
	at     time.Time       // of the latest event
}

// traceLane is a worker process in the trace.
type traceLane struct {
	pid   int
	taken []bool // by slot: a live claim has it
	named []bool // by slot: its thread name is written
}

// place is where a claim is drawn.
type place struct {
	lane  *traceLane
	slot  int
	claim *follow.Claim
}

// Trace writes the claims that were live within w as a trace in Chrome's format: a lane for each worker
// process, a slice for each claim, an arrow where a job went to another worker, and a mark for each refused
// write and for what operators did.
func Trace(ctx context.Context, store *ledger.Store, w Window, out io.Writer) error {
	t := &tracer{
		out: bufio.NewWriterSize(out, 64<<10), first: true,
		lanes: make(map[event.Worker]*traceLane), places: make(map[int64]place), last: make(map[int64]place),
	}
	fmt.Fprint(t.out, `{"displayTimeUnit":"ms","traceEvents":[`)
	t.write(traceEvent{Name: "process_name", Phase: "M", PID: operators,
		Args: map[string]any{"name": "operators"}})
	if err := eachClaim(ctx, store, w, t, t.slice); err != nil {
		return err
	}
	fmt.Fprint(t.out, "\n]}\n")
	return t.out.Flush()
}

// write writes an entry. The first error stays in t.out, for Flush.
func (t *tracer) write(e traceEvent) {
	entry, err := json.Marshal(e)
	if err != nil { // impossible: JSON can represent all that Args holds
		entry = []byte("null")
	}
	if !t.first {
		_ = t.out.WriteByte(',')
	}
	t.first = false
	_ = t.out.WriteByte('\n')
	_, _ = t.out.Write(words.EscapeJSON(entry))
}

// begin gives the claims that are live at the beginning their places.
func (t *tracer) begin(live []*follow.Claim, at time.Time) {
	t.at = at
	for _, claim := range live {
		t.enter(claim)
	}
}

// watch gives each claim its place when it begins, and marks events that are not claims.
func (t *tracer) watch(e event.Event, claim *follow.Claim) error {
	t.at = e.At
	if e.Kind() == event.KindClaimed {
		t.enter(claim)
	}
	if claim == nil && e.To.Final() {
		delete(t.last, e.N)
	}
	t.mark(e)
	return nil
}

// laneOf returns the lane of a worker process, a new one if it has none.
func (t *tracer) laneOf(w event.Worker) *traceLane {
	lane := t.lanes[w]
	if lane == nil {
		lane = &traceLane{pid: operators + 1 + len(t.lanes)}
		t.lanes[w] = lane
	}
	return lane
}

// enter gives a new claim the lowest free slot of its worker.
func (t *tracer) enter(claim *follow.Claim) {
	lane := t.laneOf(claim.Worker)
	slot := slices.Index(lane.taken, false)
	if slot < 0 {
		slot = len(lane.taken)
		lane.taken, lane.named = append(lane.taken, false), append(lane.named, false)
	}
	lane.taken[slot] = true
	t.places[claim.N] = place{lane, slot, claim}
}

// leave frees the slot of an ended claim and returns its place.
func (t *tracer) leave(claim *follow.Claim) place {
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

// slice draws a claim, and an arrow to it from the job's previous claim if another worker had that.
func (t *tracer) slice(claim *follow.Claim) error {
	before, again := t.last[claim.N]
	at, until := t.places[claim.N], t.at
	end := endOf(claim)
	if claim.End != nil {
		t.leave(claim)
		until = end.at
	}
	t.name(at, claim.Worker)
	begun := event.Micros(claim.ClaimedAt)
	took := event.Micros(until) - begun
	t.write(traceEvent{Name: claim.Queue, Cat: "claim", Phase: "X", TS: begun, Dur: &took,
		PID: at.lane.pid, TID: at.slot + 1, Args: sliceArgs(claim, end)})
	if again && before.claim.Worker != claim.Worker {
		left := event.Micros(before.claim.End.At)
		if left > event.Micros(before.claim.ClaimedAt) {
			left-- // still within its slice
		}
		id := strconv.FormatInt(claim.Pos, 16)
		t.write(traceEvent{Name: "handed over", Cat: "job", Phase: "s", TS: left,
			PID: before.lane.pid, TID: before.slot + 1, ID: id})
		t.write(traceEvent{Name: "handed over", Cat: "job", Phase: "f", TS: begun,
			PID: at.lane.pid, TID: at.slot + 1, ID: id, Bind: "e"})
	}
	return nil
}

func sliceArgs(claim *follow.Claim, end ending) map[string]any {
	args := map[string]any{
		"job": claim.Job, "attempt": claim.Attempt, "queue": claim.Queue, "pos": strconv.FormatInt(claim.Pos, 10),
		"claimed_at": words.JSONTime(claim.ClaimedAt), "lease_until": words.JSONTime(claim.LeaseUntil),
		"heartbeats": claim.Heartbeats, "outcome": nil,
	}
	if claim.End != nil {
		args["outcome"] = end.outcome
	}
	for name, value := range map[string]string{
		"last_heartbeat": timeOrEmpty(claim.LastHeartbeat), "ended_at": timeOrEmpty(end.at),
		"exit_code": numberOrEmpty(end.exitCode), "signal": end.signal, "error_code": end.errorCode,
	} {
		if value != "" {
			args[name] = value
		}
	}
	return args
}

// name names the worker and the slot before the first entry that is drawn there.
func (t *tracer) name(at place, w event.Worker) {
	if at.lane.named[at.slot] {
		return
	}
	pid, slot := at.lane.pid, at.slot+1
	if !slices.Contains(at.lane.named, true) {
		labels := fmt.Sprintf("%s, boot %s", words.Process(w), w.Boot)
		t.write(traceEvent{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": w.Name}})
		t.write(traceEvent{Name: "process_labels", Phase: "M", PID: pid, Args: map[string]any{"labels": labels}})
	}
	at.lane.named[at.slot] = true
	t.write(traceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: slot,
		Args: map[string]any{"name": fmt.Sprintf("job %d", slot)}})
}

// mark draws a refused write on its worker's lane, and an operator's command on theirs.
func (t *tracer) mark(e event.Event) {
	mark := traceEvent{
		Name: e.Kind().String(), Cat: "moment", Phase: "i", TS: event.Micros(e.At), PID: operators, TID: 1,
		Scope: "t",
		Args:  map[string]any{"pos": strconv.FormatInt(e.Pos, 10), "actor": e.Actor},
	}
	if e.Job != "" {
		mark.Args["job"] = e.Job
	}
	switch b := e.Body.(type) {
	case *event.Refused:
		mark.Args["command"], mark.Args["why"], mark.Args["attempt"] = b.Command, b.Why, e.Attempt
		t.onLane(&mark, e.Worker)
	case *event.Stopped:
		mark.Args["why"], mark.Args["attempt"] = b.Why, e.Attempt
		t.onLane(&mark, e.Worker)
	case *event.Survived:
		mark.Args["cannot_end"], mark.Args["attempt"] = b.CannotEnd, e.Attempt
		t.onLane(&mark, e.Worker)
	case *event.TakenOver:
		mark.Args["attempt"], mark.Args["process"] = e.Attempt, words.Process(e.Worker)
		if at, ok := t.places[e.N]; ok {
			t.name(at, at.claim.Worker)
			mark.PID = at.lane.pid
		}
	case *event.QueuePaused, *event.QueueResumed:
		mark.Args["queue"], mark.Args["reason"] = event.Said(b, "queue"), event.Said(b, "reason")
	case *event.QueueLimited:
		mark.Args["queue"], mark.Args["limit"], mark.Args["reason"] = b.Queue, words.LimitText(b), b.Reason
	case *event.QueueDefaults:
		mark.Args["queue"], mark.Args["defaults"], mark.Args["reason"] = b.Queue, words.DefaultsText(b), b.Reason
	case *event.ScheduleSet, *event.SchedulePaused, *event.ScheduleResumed, *event.ScheduleRemoved:
		mark.Args["schedule"], mark.Args["reason"] = event.Said(b, "name"), event.Said(b, "reason")
	case *event.ScheduleSkipped:
		mark.Args["schedule"], mark.Args["why"], mark.Args["ticks"] = b.Name, b.Why, b.Count
	case *event.Cancelled, *event.Retried, *event.Rescheduled, *event.Edited, *event.Erased:
		mark.Args["reason"] = event.Said(b, "reason")
	case *event.Rebuilt, *event.Restored, *event.Imported, *event.Sealing, *event.Archived,
		*event.Removed, *event.ArchivePolicy, *event.ArchiveDescribed:
	default:
		return
	}
	t.write(mark)
}

// onLane puts a mark on the lane of its worker, if it has one.
func (t *tracer) onLane(mark *traceEvent, w event.Worker) {
	if w == (event.Worker{}) {
		return
	}
	lane := t.laneOf(w)
	if len(lane.taken) == 0 { // it held nothing within the window
		lane.taken, lane.named = append(lane.taken, false), append(lane.named, false)
	}
	t.name(place{lane: lane}, w)
	mark.PID = lane.pid
}
