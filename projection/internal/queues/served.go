package queues

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Life is a worker process that announced its start, and from when to when it lived.
type Life struct {
	event.Worker
	Queues, Capabilities []string
	Began, Ended         time.Time
}

// announced is a queue that a process announced at its start.
type announced struct{ boot, queue string }

// service is that a process serves a queue.
type service struct {
	queue        string
	began, ended int64
	life         *Life
}

// change is a moment at which the number of processes that serve a queue rises or falls by one.
type change struct {
	at, by int64
	*service
}

// demand is the course of the jobs of a queue that ask the same of a worker: its version and capabilities.
type demand struct {
	course
	of      projection.Job // one of them
	workers int64          // processes that announced the queue, live, and take them
}

// serve prepares what Lives say.
func (c *Causes) serve() {
	c.announced = make(map[announced]bool)
	for i := range c.Lives {
		l := &c.Lives[i]
		for _, queue := range l.Queues {
			c.announced[announced{l.Boot, queue}] = true
			c.services = append(c.services, service{queue, event.Micros(l.Began), event.Micros(l.Ended), l})
		}
	}
	for i := range c.services {
		s := &c.services[i]
		c.changes = append(c.changes, change{s.began, 1, s}, change{s.ended, -1, s})
	}
	slices.SortFunc(c.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
}

// course makes sure that there is a course for jobs like j, and returns its key.
func (c *Causes) course(j projection.Job, now int64) (key string) {
	q := c.of(j.Queue)
	if j.Version != "" || len(j.Requires) > 0 {
		key = fmt.Sprintf("%q %q", j.Version, j.Requires)
	}
	if q.demands[key] == nil {
		d := &demand{of: j}
		for _, s := range c.services {
			if s.queue == j.Queue && s.began <= now && now < s.ended && d.takenBy(s.life) {
				d.workers++
			}
		}
		q.demands[key] = d
		c.note(j.Queue, now)
	}
	return key
}

// takenBy reports whether the process takes jobs like these.
func (d *demand) takenBy(l *Life) bool {
	fits, _ := projection.Fits(d.of, l.Version, l.Capabilities)
	return fits
}

// pass notes which services began and ended up to now.
func (c *Causes) pass(now int64) {
	for len(c.changes) > 0 && c.changes[0].at <= now {
		next := c.changes[0]
		c.changes = c.changes[1:]
		if q := c.queues[next.queue]; q != nil {
			for _, d := range q.demands {
				if d.takenBy(next.life) {
					d.workers += next.by
				}
			}
			c.note(next.queue, next.at)
		}
	}
}

var demandingJobs = event.SQL(`SELECT e.pos FROM events e
WHERE e.kind = {enqueued} AND e.pos > ? AND e.pos <= ?
    AND (e.data ->> 'version' IS NOT NULL OR e.data ->> 'requires' IS NOT NULL)`)

// findDemanding finds the new jobs that not each worker takes.
func (c *Causes) findDemanding(ctx context.Context, tx *ledger.Tx) error {
	found, err := table.Numbers(ctx, tx, demandingJobs, c.From.Pos, c.To.Pos)
	c.demanding = make(map[int64]bool, len(found))
	for _, n := range found {
		c.demanding[n] = true
	}
	return err
}
