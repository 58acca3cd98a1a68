package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Clocks asks which worker processes wrote by a clock that was behind the ledger's within a window. The time
// of an event is never before that of the previous event, so a slow clock leaves no trace there; but a lease
// ends by the clock of the process that took it, and seems too short.
type Clocks struct{ Span }

// Clock is a worker process whose leases did not all seem equally long.
type Clock struct {
	Worker      event.Worker
	Behind      time.Duration // by how much its shortest lease was shorter than its longest
	Events      int64         // with a lease that was shorter by a second or more
	First, Last time.Time     // of these
}

// Read returns the processes, the one that was most behind first. It reads the claims and heartbeats of the
// window. A process that asks for leases of several lengths is taken for one with a wrong clock.
func (q Clocks) Read(ctx context.Context, tx *ledger.Tx) (found []Clock, err error) {
	if q.To.Pos <= q.From.Pos {
		return nil, nil
	}
	leases := make(map[event.Worker]map[time.Duration]*Clock) // by their length in whole seconds
	f := ledger.Filter{After: q.From.Pos, Until: q.To.Pos, Worker: q.Worker,
		Kinds: []event.Kind{event.KindClaimed, event.KindHeartbeat}}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		var until time.Time
		switch b := e.Body.(type) {
		case *event.Claimed:
			until = b.LeaseUntil
		case *event.Heartbeat:
			until = b.LeaseUntil
		}
		if leases[e.Worker] == nil {
			leases[e.Worker] = make(map[time.Duration]*Clock)
		}
		length := until.Sub(e.At).Round(time.Second)
		c := leases[e.Worker][length]
		if c == nil {
			c = &Clock{First: e.At}
			leases[e.Worker][length] = c
		}
		c.Events, c.Last = c.Events+1, e.At
	}
	for w, clocks := range leases {
		lengths := slices.Sorted(maps.Keys(clocks))
		short, longest := lengths[:len(lengths)-1], lengths[len(lengths)-1]
		if len(short) == 0 {
			continue
		}
		all := Clock{Worker: w, Behind: longest - short[0], First: clocks[short[0]].First}
		for _, length := range short {
			c := clocks[length]
			all.Events += c.Events
			if c.First.Before(all.First) {
				all.First = c.First
			}
			if c.Last.After(all.Last) {
				all.Last = c.Last
			}
		}
		found = append(found, all)
	}
	slices.SortFunc(found, func(a, b Clock) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), a.First.Compare(b.First),
			cmp.Compare(a.Worker.Boot, b.Worker.Boot))
	})
	return found, nil
}
