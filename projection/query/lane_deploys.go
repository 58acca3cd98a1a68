package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// maxActs is how many acts of operators lanes show, the last ones.
const maxActs = 200

// deployGap is the time within which changes between the same two versions count as one deploy.
const deployGap = 10 * time.Minute

// Deploy is a new version: workers that ran one started again with another.
type Deploy struct {
	At      int64    `json:"at"`    // of the first of them
	Until   int64    `json:"until"` // of the last
	From    string   `json:"from"`  // "": none was given
	To      string   `json:"to"`
	Workers []string `json:"workers"`
}

// addStarts adds to the rows when their processes started, and with which versions. The version of a row from
// before the window is that of its first claim. seen are the boots of processes of the window.
func (l *LaneChart) addStarts(ctx context.Context, tx *ledger.Tx, s Lanes, seen map[string]bool) error {
	var starts []event.Event
	within := make(map[string]bool) // boots
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindWorkerStarted},
		After: s.From.Pos, Until: s.To.Pos}) {
		if err != nil {
			return err
		}
		if s.Own && !seen[e.Worker.Boot] {
			continue
		}
		starts = append(starts, e)
		within[e.Worker.Boot] = true
	}
	for _, a := range l.All {
		if within[a.Worker.Boot] {
			continue
		}
		within[a.Worker.Boot] = true // its version is known now
		for _, lane := range l.rowsOf(a.Worker) {
			lane.Version = cmp.Or(lane.Version, a.Worker.Version)
		}
	}
	for _, e := range starts {
		at := s.millis(e.At)
		for _, lane := range l.rowsOf(e.Worker) {
			known := lane.Version != "" || len(lane.Starts) > 0
			lane.Starts = append(lane.Starts, at)
			if known && lane.Version != e.Worker.Version {
				lane.Versions = append(lane.Versions, at)
				l.addDeploy(Deploy{at, at, lane.Version, e.Worker.Version, []string{e.Worker.Name}})
			}
			lane.Version = e.Worker.Version
		}
	}
	return nil
}

// addDeploy adds d, or merges it into an earlier one.
func (l *LaneChart) addDeploy(d Deploy) {
	for i := range l.Deploys {
		if o := &l.Deploys[i]; o.From == d.From && o.To == d.To && d.At-o.Until <= deployGap.Milliseconds() {
			o.Until = max(o.Until, d.At)
			if at, found := slices.BinarySearchFunc(o.Workers, d.Workers[0], cmp.Compare[string]); !found {
				o.Workers = slices.Insert(o.Workers, at, d.Workers[0])
			}
			return
		}
	}
	l.Deploys = append(l.Deploys, d)
}
