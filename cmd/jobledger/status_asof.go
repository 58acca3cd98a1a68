package main

import (
	"context"
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
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
			if err := p.PrintJSON(layout.NewStatusThenJSON(q, m)); err != nil {
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
	if _, err := p.Stdout.WriteString("\n"); err != nil {
		return err
	}
	return p.PrintTable(layout.CountsNow(found))
}
