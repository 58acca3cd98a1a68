package incident

import (
	"time"

	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// maxPoints bounds the points of a Depth. A long window has one every few minutes.
const maxPoints = 720

// Depth is how many jobs were queued and how many were held, at regular times.
type Depth struct {
	From, To time.Time
	Step     time.Duration // between two points: a whole number of minutes
	Points   []DepthPoint  // at From, From+Step and so on; at least two
	Peaks    map[string]*Peak

	next  time.Time // of the next point
	now   DepthPoint
	tally follow.Tally // of open jobs; it may lack jobs that ended before
}

// DepthPoint is the number of jobs at a moment.
type DepthPoint struct {
	Queued int64
	Held   int64 // claimed or running
}

// Peak is the most jobs that a queue had within the window, and when it first had them.
type Peak struct {
	Queued, Held     int64
	QueuedAt, HeldAt time.Time
}

func newDepth(from, to time.Time) *Depth {
	d := &Depth{
		From: from.UTC().Truncate(time.Minute), To: to, Step: time.Minute, Peaks: make(map[string]*Peak),
		tally: follow.Tally{},
	}
	for to.Sub(d.From)/d.Step > maxPoints {
		d.Step += time.Minute
	}
	d.next = d.From
	return d
}

// seed takes a transition that came before the first event, in any order.
func (d *Depth) seed(e event.Event, queue string) error {
	d.count(e, queue)
	return nil
}

func (d *Depth) count(e event.Event, queue string) {
	d.tally.Add(e, queue)
	d.now.count(e.From, -1)
	d.now.count(e.To, 1)
}

// add takes the next event. Only events within the window can make a peak.
func (d *Depth) add(e event.Event, queue string, within bool) {
	d.pointsUntil(e.At)
	if e.Seq == 0 {
		return
	}
	d.count(e, queue)
	if !within {
		return
	}
	p := d.Peaks[queue]
	if p == nil {
		p = &Peak{}
		d.Peaks[queue] = p
	}
	states := d.tally[queue]
	if n := states[event.Queued]; n > p.Queued {
		p.Queued, p.QueuedAt = n, e.At
	}
	if n := states[event.ClaimedState] + states[event.Running]; n > p.Held {
		p.Held, p.HeldAt = n, e.At
	}
}

func (p *DepthPoint) count(s event.State, by int64) {
	switch {
	case s == event.Queued:
		p.Queued += by
	case s.Held():
		p.Held += by
	}
}

// pointsUntil adds the points before t, at which the numbers are those of now.
func (d *Depth) pointsUntil(t time.Time) {
	for d.next.Before(t) && !d.next.After(d.To) {
		d.Points = append(d.Points, d.now)
		d.next = d.next.Add(d.Step)
	}
}

// finish adds the points after the last event.
func (d *Depth) finish() {
	d.pointsUntil(d.To.Add(time.Nanosecond))
	if len(d.Points) == 1 { // a line needs two
		d.Points = append(d.Points, d.now)
	}
}
