package hook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// Limits of what waits to be sent.
const (
	pageEvents = 500    // that are read at a time
	maxWaiting = 10_000 // deliveries of one webhook; the events after those are not read yet
)

// Tags of a delivery.
const (
	tagKind = "event"
	tagJob  = "job"
)

// feed makes events into deliveries.
type feed struct {
	service  *commands.Service
	endpoint Endpoint
	report   func(format string, args ...any)

	pos   int64 // every event up to it was looked at
	known bool
	end   await.SeenEnd // at pos
	most  int64         // deliveries that wait at a time
	room  int64         // for so many more, without counting again
}

// step reads the next events and enqueues the deliveries. It reports whether there may be more.
func (f *feed) step(ctx context.Context) (more bool, err error) {
	var jobs []commands.Enqueue
	var next int64
	var end await.SeenEnd
	err = f.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		jobs, next, more = nil, f.pos, false
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		end = f.end
		holds, err := end.Holds(ctx, tx, tail)
		if err != nil || f.known && holds && tail == f.pos {
			return err
		}
		if !f.known || tail < f.pos || !holds {
			if f.known {
				f.report("webhook %s: the ledger lacks events that were read, as after a failover that lost some; the "+
					"events in their place are sent", f.endpoint.Name)
			}
			if f.pos, err = f.start(ctx, tx, tail); err != nil {
				return err
			}
			f.known, next, end = true, f.pos, await.SeenEnd{}
		}
		if f.room < pageEvents {
			waiting, err := status.CountReady(ctx, tx, f.endpoint.Queue(), time.Now().Add(commands.MaxRunTime))
			if f.room = f.most - waiting; err != nil || f.room < pageEvents {
				return err
			}
		}
		if jobs, next, more, err = f.read(ctx, tx, tail); err == nil {
			err = end.Move(ctx, tx, next)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if err := f.enqueue(ctx, jobs); err != nil {
		return false, err
	}
	f.pos, f.end, f.room = next, end, f.room-int64(len(jobs))
	return more, nil
}

// start is where to go on: after the newest delivery, or after what the endpoint names. If that event is
// not in the ledger any more, because restore replaced it, everything since the restore is new.
func (f *feed) start(ctx context.Context, tx *ledger.Tx, tail int64) (pos int64, err error) {
	newest, err := projection.List(ctx, tx, projection.Filter{Queues: []string{f.endpoint.Queue()}, Limit: 100})
	if err != nil {
		return 0, err
	}
	for _, j := range newest {
		pos = max(pos, PosOf(j.Key))
	}
	after := f.endpoint.After
	if after.Pos == 0 {
		return pos, nil
	}
	if after.Pos <= tail {
		x, found, err := tx.EventAt(ctx, after.Pos)
		if err != nil {
			return 0, err
		}
		id := after.ID
		if found { // else it was removed, and is in the archive
			if id, err = IDOf(x); err != nil {
				return 0, err
			}
		}
		if id == after.ID {
			return max(pos, after.Pos), nil
		}
	}
	restored, _, err := tx.OneEvent(ctx, ledger.Filter{Kinds: []event.Kind{event.KindRestored}, Last: true})
	if err != nil {
		return 0, err
	}
	since := restored.Pos
	if !after.At.IsZero() { // what was recorded later is new, such as after a failover that lost that event
		then, err := tx.PosAt(ctx, after.At)
		if err != nil {
			return 0, err
		}
		since = max(since, then)
	}
	if pos = max(pos, since); pos == 0 && after.At.IsZero() {
		f.report("webhook %s: the ledger is not the one for which it was made; it gets only new events",
			f.endpoint.Name)
		pos = tail
	}
	return pos, nil
}

// read makes deliveries of the events up to tail, or of the first ones.
func (f *feed) read(ctx context.Context, tx *ledger.Tx, tail int64) (jobs []commands.Enqueue, next int64,
	more bool, err error) {
	filter := ledger.Filter{Kinds: f.endpoint.kinds(), After: f.pos, Until: tail, Limit: pageEvents}
	if q := f.endpoint.Queues; len(q) == 1 && !strings.HasSuffix(q[0], "*") {
		filter.Queue = q[0]
	}
	var events []event.Event
	for x, err := range tx.Events(ctx, filter) {
		if err != nil {
			return nil, 0, false, err
		}
		events = append(events, x)
	}
	if next, more = tail, len(events) == pageEvents; more {
		next = events[len(events)-1].Pos
	}
	about, err := jobsOf(ctx, tx, events)
	for _, x := range events {
		if err != nil {
			break
		}
		queue := event.Said(x.Body, "queue")
		if x.N != 0 {
			queue = about[x.N].Queue
		}
		if !f.endpoint.selects(x, queue) {
			continue
		}
		var id string
		id, err = IDOf(x)
		tags := map[string]string{tagKind: x.Kind().String()}
		if x.Job != "" {
			tags[tagJob] = string(x.Job)
		}
		jobs = append(jobs, commands.Enqueue{Queue: f.endpoint.Queue(), Key: id, Payload: []byte(id), Tags: tags,
			MaxAttempts: maxAttempts, Backoff: backoff})
	}
	return jobs, next, more, err
}

// jobsOf returns the jobs that events are about, by their numbers.
func jobsOf(ctx context.Context, tx *ledger.Tx, events []event.Event) (map[int64]projection.Job, error) {
	var ns []int64
	for _, x := range events {
		if x.N != 0 {
			ns = append(ns, x.N)
		}
	}
	slices.Sort(ns)
	return projection.GetMany(ctx, tx, slices.Compact(ns))
}

// enqueue enqueues jobs, those that are there already too. A delivery whose payload was erased is left alone.
func (f *feed) enqueue(ctx context.Context, jobs []commands.Enqueue) error {
	if len(jobs) == 0 {
		return nil
	}
	actor := "webhook:" + f.endpoint.Name
	_, err := f.service.Enqueue(ctx, actor, jobs...)
	if !errors.Is(err, commands.ErrConflict) {
		return err
	}
	for _, j := range jobs {
		if _, err := f.service.Enqueue(ctx, actor, j); err != nil && !errors.Is(err, commands.ErrConflict) {
			return err
		}
	}
	return nil
}

// PlaceAt is the place of the event at pos; 0: before the first event.
func PlaceAt(ctx context.Context, tx *ledger.Tx, pos int64) (p Place, err error) {
	if pos == 0 {
		return p, nil
	}
	p.Pos = pos
	x, found, err := tx.EventAt(ctx, pos)
	if err == nil && found {
		p.At = x.At
		p.ID, err = IDOf(x)
	}
	return p, err
}
