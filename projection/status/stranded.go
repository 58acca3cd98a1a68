package status

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Stranded counts ready jobs of one queue, version and set of labels that no live worker may take.
type Stranded struct {
	Queue    string
	Version  string
	Requires []string
	Jobs     int64
	Since    time.Time // the run_at of the one that has waited for longest
	Service
}

// stranded returns the jobs that had been ready for longer than patience as of l and that no worker serves;
// see Service. Paused queues are left out.
func (l *look) stranded(ctx context.Context, tx *ledger.Tx, paused map[string]bool, patience time.Duration) (
	found []Stranded, err error) {
	workforce, err := l.workforce(ctx, tx)
	if err != nil {
		return nil, err
	}
	lanes := ReadyLanesAmong(l.open, l.at.At)
	if l.at.IsNow() {
		if lanes, err = ReadyLanes(ctx, tx, l.at.At); err != nil {
			return nil, err
		}
	}
	return workforce.stranded(lanes, paused, l.at.At, patience), nil
}

// stranded returns what is stranded among lanes.
func (f Workforce) stranded(lanes []ReadyLane, paused map[string]bool, now time.Time,
	patience time.Duration) (found []Stranded) {
	for _, l := range lanes {
		if paused[l.Queue] || now.Sub(l.Since) < patience || event.RunOf(l.Requires) != "" {
			continue
		}
		s := Stranded{Queue: l.Queue, Version: l.Version, Requires: l.Requires, Jobs: l.Jobs, Since: l.Since}
		if s.Service = f.ServiceOf(s.Queue, s.Version, s.Requires); !s.Served() {
			found = s.addTo(found)
		}
	}
	return found
}

// addStranded sets Stranded in the statuses of queues. It looks at workers only if a job has waited for a
// minute.
func (l *look) addStranded(ctx context.Context, tx *ledger.Tx, queues []Queue) error {
	if !slices.ContainsFunc(queues, func(q Queue) bool { return q.hasWaited(l.at.At) }) {
		return nil
	}
	paused := make(map[string]bool)
	for _, q := range queues {
		paused[q.Name] = q.Paused
	}
	found, err := l.stranded(ctx, tx, paused, time.Minute)
	for _, s := range found {
		if i := slices.IndexFunc(queues, func(q Queue) bool { return q.Name == s.Queue }); i >= 0 {
			queues[i].Stranded = append(queues[i].Stranded, s)
		}
	}
	return err
}

// hasWaited reports whether a job of q has been ready for a minute at now, and may be claimed.
func (q *Queue) hasWaited(now time.Time) bool {
	return !q.Paused && !q.OldestReady.IsZero() && now.Sub(q.OldestReady) >= time.Minute
}

// addTo adds s to found, merging entries that differ in priority only.
func (s *Stranded) addTo(found []Stranded) []Stranded {
	for i := range found {
		f := &found[i]
		if f.Queue == s.Queue && f.Version == s.Version && slices.Equal(f.Requires, s.Requires) {
			f.Jobs += s.Jobs
			if s.Since.Before(f.Since) {
				f.Since = s.Since
			}
			return found
		}
	}
	return append(found, *s)
}
