package query

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// maxMarks is how many refused writes lanes show.
const maxMarks = 500

// addMarks adds the refused writes, each with what its result says.
func (l *LaneChart) addMarks(ctx context.Context, tx *ledger.Tx, s Lanes, rows map[rowKey]int) error {
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindRefused}, After: s.From.Pos,
		Until: s.To.Pos, Queue: s.Queue, Worker: s.Worker, Limit: maxMarks}) {
		if err != nil {
			return err
		}
		l.Marks = append(l.Marks, Mark{At: s.millis(e.At), Pos: e.Pos, N: e.N, Bar: -1, event: e})
	}
	for i := range l.Marks {
		m := &l.Marks[i]
		queue := ""
		var events []event.Event
		for e, err := range tx.Events(ctx, ledger.Filter{Job: m.N, Until: s.To.Pos}) {
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.Enqueued); ok {
				queue = b.Queue
			}
			events = append(events, e)
		}
		m.Row = l.rowOf(s.key(m.event.Worker, queue), rows)
		for _, z := range Zombies(events) {
			if z.Pos == m.Pos {
				m.Text, m.Twice = z.Verdict, z.Twice
			}
		}
		for _, a := range l.All {
			if a.N == m.N && a.Attempt == m.event.Attempt {
				m.Bar = slices.Index(l.Event, a.Pos)
			}
		}
	}
	return nil
}

// claimKey is a claim: the number of its job, and the attempt.
type claimKey struct {
	n       int64
	attempt int
}

// readLeases reads when the leases of claims ended that were taken back within s. Their ends say it.
func (l *LaneChart) readLeases(ctx context.Context, tx *ledger.Tx, s Span) error {
	l.leases = make(map[claimKey]time.Time)
	if !slices.ContainsFunc(l.All, func(a Attempt) bool { return a.Outcome == event.KindReclaimed }) {
		return nil
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindReclaimed}, After: s.From.Pos,
		Until: s.To.Pos, Queue: s.Queue, Worker: s.Worker}) {
		if err != nil {
			return err
		}
		if b, ok := e.Body.(*event.Reclaimed); ok {
			l.leases[claimKey{e.N, e.Attempt}] = b.LeaseUntil
		}
	}
	return nil
}

// addPauses adds when queues were paused.
func (l *LaneChart) addPauses(ctx context.Context, tx *ledger.Tx, s Span) error {
	end := s.millis(s.To.At)
	queues, err := Queues{At: &s.From, Paused: true}.Read(ctx, tx)
	if err != nil {
		return err
	}
	open := make(map[string]int)
	begin := func(p Pause) {
		if s.Queue == "" || s.Queue == p.Queue {
			open[p.Queue] = len(l.Pauses)
			p.To = end
			l.Pauses = append(l.Pauses, p)
		}
	}
	for _, q := range queues {
		if q.Paused {
			begin(Pause{Queue: q.Name, By: q.Actor, Reason: q.Reason})
		}
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindQueuePaused,
		event.KindQueueResumed}, After: s.From.Pos, Until: s.To.Pos}) {
		if err != nil {
			return err
		}
		switch b := e.Body.(type) {
		case *event.QueuePaused:
			begin(Pause{Queue: b.Queue, From: s.millis(e.At), By: e.Actor, Reason: b.Reason})
		case *event.QueueResumed:
			if i, ok := open[b.Queue]; ok {
				l.Pauses[i].To = s.millis(e.At)
				delete(open, b.Queue)
			}
		}
	}
	return nil
}
