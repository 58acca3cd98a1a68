package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

const aboutAsOf = " With --as-of it is what the events up to that moment add up to: a time, or a place in the ledger, pos:N. " +
	"What has become of it is shown beside that."

func asOfFlag() cli.Flag {
	return &cli.StringFlag{Name: "as-of", Usage: "as it was at `TIME`"}
}

// asOf reads --as-of.
func (p *program) asOf(c *cli.Context, service *commands.Service) (m projection.Moment, given bool, err error) {
	err = service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		m, given, err = p.momentOf(c, "as-of", tx)
		return err
	})
	return m, given, err
}

// momentOf reads a flag that names a moment of the past.
func (p *program) momentOf(c *cli.Context, name string, tx *ledger.Tx) (m projection.Moment, given bool, err error) {
	w, given, err := p.whenOf(c, name)
	if err != nil || !given {
		return m, given, err
	}
	m, err = p.momentAt(c.Context, name, tx, w)
	return m, true, err
}

// momentAt is the moment w, the value of the flag with this name. What is to come is refused: nobody knows it.
func (p *program) momentAt(ctx context.Context, name string, tx *ledger.Tx, w when) (m projection.Moment, err error) {
	if !w.ByPos {
		if w.Time.After(p.now()) {
			return m, usagef("--%s: %s is yet to come", name, render.Time(p.local(w.Time)))
		}
		return projection.AtTime(ctx, tx, w.Time)
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return m, err
	}
	if w.Pos > tail {
		return m, usagef("--%s: the ledger ends at pos:%d", name, tail)
	}
	return projection.AtPos(ctx, tx, w.Pos)
}

// at is p with its clock standing at m, so that what it prints is judged and told as it would have been then.
func (p *program) at(m projection.Moment) *program {
	then := *p
	zone := p.now().Location()
	then.now = func() time.Time { return m.At.In(zone) }
	return &then
}

// precisely is t as a listing gives the times of events: to the millisecond, with its offset, fit for a flag.
func (p *program) precisely(t time.Time) string {
	return p.local(t).Format("2006-01-02 15:04:05.000-07:00")
}
