package main

import (
	"context"
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/status"
)

// statusThen prints how things stood at m, and how many jobs there are now. What it holds of the ledger by
// then is in memory, so that a slow reader holds no snapshot open.
func (p *program) statusThen(ctx context.Context, tx *ledger.Tx, past cli.Past) error {
	m := past.Moment
	found, err := status.QueuesAsOf(ctx, tx, m)
	if err != nil {
		return err
	}
	then := p.at(m)
	if p.JSON {
		for _, q := range found {
			if err := p.PrintJSON(statusThenJSON{state.NewQueue(q.Queue, then.Now()), render.TimeOrNull(m.At),
				m.Pos, countsOf(q.Now)}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		p.Message("no jobs yet at pos %d", m.Pos)
		return nil
	}
	if err := status.AddStrandedAsOf(ctx, tx, found, m); err != nil {
		return err
	}
	last, err := state.LastEvent(ctx, tx, m.Pos)
	if err != nil {
		return err
	}
	header := fmt.Sprintf("as of %s (pos %d), %s", render.Time(p.Local(m.At)), m.Pos, render.Age(m.At, p.Now()))
	if past.Copy {
		header = fmt.Sprintf("copy of %s %s", past.From, header)
	}
	if err := p.PrintLine(header); err != nil {
		return err
	}
	var queues []status.Queue
	for _, q := range found {
		queues = append(queues, q.Queue)
	}
	if err := then.printStatus(queues, last); err != nil {
		return err
	}
	if past.Copy {
		return nil
	}
	return p.printCountsNow(found)
}

// printCountsNow prints what has become of the queues.
func (p *program) printCountsNow(found []status.QueueThen) error {
	t := &cli.Table{Columns: []cli.Column{{Title: "NOW", Least: 8}}}
	for _, s := range event.States() {
		t.Columns = append(t.Columns, cli.Column{Title: strings.ToUpper(s.String()), Right: true})
	}
	for _, q := range found {
		cells := []string{q.Name}
		for _, s := range event.States() {
			cells = append(cells, fmt.Sprint(q.Now[s]))
		}
		t.Add(cells...)
	}
	if _, err := p.Stdout.WriteString("\n"); err != nil {
		return err
	}
	return p.PrintTable(t)
}

// statusThenJSON is a queue as it was; now is how many jobs it has by now, also those enqueued since.
type statusThenJSON struct {
	state.Queue
	AsOf *string    `json:"as_of"`
	Pos  int64      `json:"pos"`
	Now  countsJSON `json:"now"`
}

type countsJSON struct {
	Queued    int64 `json:"queued"`
	Claimed   int64 `json:"claimed"`
	Running   int64 `json:"running"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
}

func countsOf(n map[event.State]int64) countsJSON {
	return countsJSON{n[event.Queued], n[event.ClaimedState], n[event.Running], n[event.SucceededState],
		n[event.FailedState], n[event.CancelledState]}
}
