package work

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// left counts the jobs of one queue that have not ended when a worker stops.
type left struct {
	queue     string
	held      int64
	holders   []string  // workers that hold some of them, the first 100 jobs looked at
	heldUntil time.Time // the latest end of their leases
	ready     int64     // not for this worker: a version, a capability, a limit; or they came just now
	later     int64     // their time has not come
	retrying  int64     // of ready and later: they failed before
	blocked   int64
	paused    projection.Queue
}

var heldStates = []event.State{event.ClaimedState, event.Running}

// whatIsLeft returns the queues that have jobs which have not ended.
func whatIsLeft(ctx context.Context, service *commands.Service, queues []string, now time.Time) (all []left,
	err error) {
	err = service.Store.Read(ctx, func(tx *ledger.Tx) error {
		all = nil
		found, err := status.Queues{At: projection.Now(now)}.Read(ctx, tx)
		if err != nil {
			return err
		}
		for _, q := range found {
			if !slices.Contains(queues, q.Name) {
				continue
			}
			l := left{queue: q.Name, ready: q.Ready, later: q.Scheduled, retrying: q.Retrying,
				blocked: q.Jobs[event.Blocked], paused: q.Queue}
			for _, s := range heldStates {
				l.held += q.Jobs[s]
			}
			if l.held+l.ready+l.later+l.blocked == 0 {
				continue
			}
			held, err := projection.List(ctx, tx, projection.Filter{Queues: []string{q.Name}, States: heldStates,
				Limit: 100})
			if err != nil {
				return err
			}
			for _, j := range held {
				if !slices.Contains(l.holders, j.Worker.Name) {
					l.holders = append(l.holders, j.Worker.Name)
				}
				if j.LeaseUntil.After(l.heldUntil) {
					l.heldUntil = j.LeaseUntil
				}
			}
			all = append(all, l)
		}
		return nil
	})
	return all, err
}

// text is for people: "left in mail: 3 held by box-1 until 03:12:00, 1 later; paused by ada since 01:10:00".
// Times are in zone.
func (l left) text(zone *time.Location) string {
	var parts []string
	add := func(n int64, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
		}
	}
	holders := words.Count(int64(len(l.holders)), "worker")
	if len(l.holders) == 1 {
		holders = l.holders[0]
	}
	add(l.held, "held by %s until %s", holders, words.Time(l.heldUntil.In(zone)))
	add(l.ready, "ready")
	add(l.later, "later")
	add(l.blocked, "blocked")
	text := fmt.Sprintf("left in %s: %s", l.queue, strings.Join(parts, ", "))
	if l.retrying > 0 {
		text += fmt.Sprintf(" (%d to be tried again)", l.retrying)
	}
	if l.paused.Paused {
		text += fmt.Sprintf("; paused by %s since %s", l.paused.Actor, words.Time(l.paused.Since.In(zone)))
	}
	return text
}

// log writes l as a line of the worker's log, with --json an object.
func (l left) log(log *slog.Logger) {
	log.Info("left", "queue", l.queue, "held", l.held, "held_by", l.holders, "held_until",
		words.TimeOrNull(l.heldUntil), "ready", l.ready, "later", l.later, "retrying", l.retrying,
		"blocked", l.blocked, "paused", l.paused.Paused, "paused_by", l.paused.Actor)
}
