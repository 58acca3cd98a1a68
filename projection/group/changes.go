package group

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection/limit"
)

// Changes are the groups whose rows a function of a transaction has to bring up to date at its end: once for
// each, however many of its jobs changed.
type Changes struct {
	gate   GateOf
	groups map[groupKey]*change
	order  []*change
}

// GateOf returns the limits of a queue.
type GateOf func(ctx context.Context, tx *ledger.Tx, queue string) (*limit.Gate, error)

type groupKey struct{ queue, name string }

type change struct {
	groupKey
	lanes map[string]Served // by base: those whose queued jobs changed, and the last claim from there
	live  bool              // live claims began or ended
}

// Of returns the changes collected in the running function of tx; they are applied at its end.
func Of(tx *ledger.Tx, gate GateOf) *Changes {
	if c, ok := tx.EndHook().(*Changes); ok {
		return c
	}
	c := &Changes{gate: gate, groups: make(map[groupKey]*change)}
	tx.SetEndHook(c)
	return c
}

func (c *Changes) of(queue, name string) *change {
	key := groupKey{queue, name}
	g := c.groups[key]
	if g == nil {
		g = &change{groupKey: key, lanes: make(map[string]Served)}
		c.groups[key] = g
		c.order = append(c.order, g)
	}
	return g
}

// Lane notes that the queued jobs of a lane have changed; served is the claim that took one, if any.
func (c *Changes) Lane(base, name string, served Served) {
	lanes := c.of(QueueOf(base), name).lanes
	if served.Pos == 0 {
		served = lanes[base]
	}
	lanes[base] = served
}

// Live notes that a live claim of a group began or ended.
func (c *Changes) Live(queue, name string) { c.of(queue, name).live = true }

// End implements ledger.EndHook.
func (c *Changes) End(tx *ledger.Tx) error { return c.Apply(context.Background(), tx) }

// Apply brings the rows up to date with the changes so far.
func (c *Changes) Apply(ctx context.Context, tx *ledger.Tx) error {
	var gone []Head
	for _, g := range c.order {
		left, err := c.apply(ctx, tx, g)
		if err != nil {
			return err
		}
		gone = append(gone, left...)
	}
	for _, h := range gone { // last, because a delete sends what is buffered
		if err := Delete(ctx, tx, h); err != nil {
			return err
		}
	}
	clear(c.groups)
	c.order = c.order[:0]
	return nil
}

// apply writes the rows of one group, and returns those that are to be deleted.
func (c *Changes) apply(ctx context.Context, tx *ledger.Tx, g *change) (gone []Head, err error) {
	gate, err := c.gate(ctx, tx, g.queue)
	if err != nil || len(g.lanes) == 0 && gate.GroupBound(g.name) == 0 {
		return nil, err
	}
	room, err := gate.GroupRoom(ctx, tx, g.name, 1)
	if err != nil {
		return nil, err
	}
	next, err := gate.GroupNextStart(ctx, tx, g.name)
	if err != nil {
		return nil, err
	}
	stored, err := headsOf(ctx, tx, g.queue, g.name)
	if err != nil {
		return nil, err
	}
	write := func(old, h Head, known bool) error {
		if h.fill(room == 0, next); known && h == old {
			return nil
		}
		return Put(ctx, tx, h)
	}
	known := make(map[string]Head, len(stored))
	for _, h := range stored {
		known[h.Base] = h
		if _, changed := g.lanes[h.Base]; !changed {
			if err := write(h, h, true); err != nil {
				return nil, err
			}
		}
	}
	for base, served := range g.lanes {
		old, there := known[base]
		h := Head{Queue: g.queue, Group: g.name, Base: base, Served: old.Served}
		if served.Pos != 0 {
			h.Served = served
		}
		var queued bool
		if h.RunAt, queued, err = firstRunAt(ctx, tx, base+"\t"+g.name); err != nil {
			return nil, err
		}
		switch {
		case queued:
			err = write(old, h, there)
		case there:
			gone = append(gone, old)
		}
		if err != nil {
			return nil, err
		}
	}
	return gone, nil
}
