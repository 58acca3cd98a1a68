package query

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/projection/status"
)

// addWorkers adds the rows: of workers that had claims or that fell silent.
func (l *LaneChart) addWorkers(ctx context.Context, tx *ledger.Tx, s Lanes, rows map[rowKey]int) error {
	processes := make(map[rowKey]map[string]bool) // their boots
	seen := make(map[string]bool)
	note := func(k rowKey, boot string) {
		seen[boot] = true
		if processes[k] == nil {
			processes[k] = make(map[string]bool)
		}
		processes[k][boot] = true
	}
	workers := make(map[[2]string]bool)
	done := make(map[[2]string]bool) // process and queue
	for _, a := range l.All {
		if of := [2]string{a.Worker.Boot, a.Queue}; !done[of] {
			done[of] = true
			note(s.key(a.Worker, a.Queue), a.Worker.Boot)
			workers[[2]string{a.Worker.Host, a.Worker.Name}] = true
		}
	}
	var lost []status.LostWorker
	if !s.Own {
		var err error
		if lost, err = status.LostWorkers(ctx, tx, s.From, s.To); err != nil {
			return err
		}
	}
	if s.Queue != "" || s.Worker != "" {
		lost = slices.DeleteFunc(lost, func(w status.LostWorker) bool { return !seen[w.Boot] })
	}
	for _, w := range lost {
		if !workers[[2]string{w.Host, w.Name}] { // it has no row yet
			note(s.key(w.Worker.Worker, firstOf(w.Queues)), w.Boot)
		} else if s.Group != "queue" {
			note(s.key(w.Worker.Worker, ""), w.Boot)
		}
		seen[w.Boot] = true
	}
	for _, k := range slices.SortedFunc(maps.Keys(processes), rowKey.compare) {
		l.Lanes[l.rowOf(k, rows)].Processes = len(processes[k])
	}
	if err := l.addIdle(ctx, tx, s); err != nil {
		return err
	}
	if err := l.addStarts(ctx, tx, s, seen); err != nil {
		return err
	}
	for _, w := range lost {
		until := s.To.At
		if !w.Replaced.IsZero() {
			until = w.Replaced
		}
		for _, lane := range l.rowsOf(w.Worker.Worker) {
			lane.Silent = append(lane.Silent, [2]int64{s.millis(w.SeenAt), s.millis(until)})
		}
	}
	return nil
}

// addIdle adds the workers that lived within s and have no row, by name. Where only the jobs of one queue
// count, there are none: they say nothing of such workers.
func (l *LaneChart) addIdle(ctx context.Context, tx *ledger.Tx, s Lanes) error {
	if s.Own {
		return nil
	}
	all, err := status.Workers{At: s.To, All: true}.Read(ctx, tx)
	if err != nil {
		return err
	}
	idle := make(map[[2]string]int) // index in l.Idle, and 1
	l.hosts = make(map[string]map[string]bool)
	for _, w := range all {
		gone := w.SeenAt
		if w.State == status.Stopped {
			gone = w.StoppedAt
		}
		lives := w.State != status.Stopped && w.State != status.Silent || gone.After(s.From.At)
		if lives {
			if l.hosts[w.Host] == nil {
				l.hosts[w.Host] = make(map[string]bool)
			}
			l.hosts[w.Host][w.Name] = true
		}
		asked := (s.Queue == "" || slices.Contains(w.Queues, s.Queue)) &&
			(s.Worker == "" || s.Worker == w.Name || s.Worker == w.Boot)
		if !lives || !asked {
			continue
		}
		name := [2]string{w.Host, w.Name}
		if idle[name] == 0 {
			if len(l.rowsOf(w.Worker)) > 0 {
				continue
			}
			l.Idle = append(l.Idle, newLane(rowKey{"", w.Host, w.Name}))
			idle[name] = len(l.Idle)
		}
		l.Idle[idle[name]-1].Processes++
	}
	slices.SortFunc(l.Idle, func(a, b Lane) int {
		return rowKey{"", a.Host, a.Worker}.compare(rowKey{"", b.Host, b.Worker})
	})
	return nil
}

func firstOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
