// Package defaults is what the jobs of a queue get that set nothing themselves: how often they are tried, how
// long an attempt may take, and how long they wait between attempts; and whether they carry their commands.
// The events queue_defaults say it, which are few, so there is no table. What a job got is in its own
// enqueued event: later defaults do not change it.
//
// Held by TestDefaultsConcernLaterJobs, TestDefaultsOfAnotherProcessBindAtOnce and
// TestDefaultsSurviveRebuildAndImport of package commands, and by TestScripts/queue of the program. This
// package is not part of the Go API, and may change in any release.
package defaults

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Spec is the values. The zero value of a field is not a default of the queue.
type Spec struct {
	MaxAttempts int
	MaxRuntime  time.Duration
	Backoff     event.Backoff
	Commands    bool // its jobs carry their commands, and no other job is accepted
}

// Defaults is what the last event of a queue says.
type Defaults struct {
	Spec
	Queue  string
	Since  time.Time // of the event that set them
	Actor  string    // of that event
	Reason string    // of that event
}

// Body returns the event that sets s for a queue.
func (s Spec) Body(queue, reason string) *event.QueueDefaults {
	return &event.QueueDefaults{Queue: queue, MaxAttempts: s.MaxAttempts, MaxRuntime: s.MaxRuntime,
		Backoff: s.Backoff, Commands: s.Commands, Reason: reason}
}

// Evolve returns the defaults that e sets. It is pure.
func Evolve(e event.Event) (Defaults, error) {
	b, ok := e.Body.(*event.QueueDefaults)
	if !ok {
		return Defaults{}, fmt.Errorf("%w: %T sets no defaults of a queue", ledger.ErrUnknownKind, e.Body)
	}
	return Defaults{Spec: Spec{b.MaxAttempts, b.MaxRuntime, b.Backoff, b.Commands},
		Queue: b.Queue, Since: e.At, Actor: e.Actor, Reason: b.Reason}, nil
}

// Set is the defaults of each queue that ever had any.
type Set map[string]Defaults

// List returns those that say anything, by the names of their queues.
func (s Set) List() (list []Defaults) {
	for _, d := range s {
		if d.Spec != (Spec{}) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b Defaults) int { return strings.Compare(a.Queue, b.Queue) })
	return list
}

// Current returns the defaults as they are now. It costs one search in an index where no queue ever had any,
// and in a write transaction nothing unless another process has written since the last one.
func Current(ctx context.Context, tx *ledger.Tx) (s Set, err error) {
	if kept, ok := tx.Cache().Rare(event.KindQueueDefaults); ok {
		return kept.(Set), nil
	}
	last, err := tx.LastOf(ctx, event.KindQueueDefaults)
	if err != nil {
		return nil, err
	}
	if s, err = AsOf(ctx, tx, last); err != nil {
		return nil, err
	}
	tx.Cache().KeepRare(event.KindQueueDefaults, s)
	return s, nil
}

// At returns the defaults of the position of a moment; that of now is math.MaxInt64.
func At(ctx context.Context, tx *ledger.Tx, pos int64) (Set, error) {
	if pos == math.MaxInt64 {
		return Current(ctx, tx)
	}
	return AsOf(ctx, tx, pos)
}

// AsOf returns the defaults that were set by the event at pos.
func AsOf(ctx context.Context, tx *ledger.Tx, pos int64) (Set, error) {
	set := make(Set)
	if pos == 0 {
		return set, nil
	}
	f := ledger.Filter{Kinds: []event.Kind{event.KindQueueDefaults}, Until: pos}
	for e, err := range tx.Events(ctx, f) {
		var d Defaults
		if err == nil {
			d, err = Evolve(e)
		}
		if err != nil {
			return nil, err
		}
		set[d.Queue] = d
	}
	return set, nil
}
