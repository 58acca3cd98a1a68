package status

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
	"jobledger/projection/schedules"
)

// Setup has the settings of queues, and which workers serve them.
type Setup struct {
	Names     []string // of every queue that was ever used, is served or fed, or has anything set
	Limits    map[string]limit.Limit
	Defaults  defaults.Set
	Schedules map[string][]schedules.Schedule // by the queue that they feed
	Workers   map[string][]Worker             // present ones, by the queue that they serve
}

// SetupOf returns the setup of a moment at which the queues and the workers were these.
func SetupOf(ctx context.Context, tx *ledger.Tx, m projection.Moment, queues []Queue,
	workers []Worker) (s Setup, err error) {
	s = Setup{Limits: make(map[string]limit.Limit), Schedules: make(map[string][]schedules.Schedule),
		Workers: make(map[string][]Worker)}
	names := make(map[string]bool)
	for _, q := range queues {
		names[q.Name] = true
	}
	for _, w := range workers {
		for _, name := range w.Queues {
			if w.State != Stopped {
				s.Workers[name], names[name] = append(s.Workers[name], w), true
			}
		}
	}
	limits, err := (&look{at: m}).limits(ctx, tx)
	if err != nil {
		return s, err
	}
	for _, l := range limits {
		if l.Active() {
			s.Limits[l.Queue], names[l.Queue] = l, true
		}
	}
	if s.Defaults, err = defaults.At(ctx, tx, m.Pos); err != nil {
		return s, err
	}
	for _, d := range s.Defaults.List() {
		names[d.Queue] = true
	}
	list, err := schedules.At(ctx, tx, m.Pos)
	for _, one := range list {
		s.Schedules[one.Spec.Queue], names[one.Spec.Queue] = append(s.Schedules[one.Spec.Queue], one), true
	}
	s.Names = slices.Sorted(maps.Keys(names))
	return s, err
}
