package deps

import "jobledger/ledger/event"

// Changes are the changes of some waiting jobs that follow from the state of a parent.
type Changes struct {
	Remove, Break, Open []int64 // the children whose edges go, or are broken or open from now on
	Steps               []Step
}

// Step is a job that changes its state.
type Step struct {
	Child  int64
	Cancel bool // what it waits for cannot come about any more
	Retry  bool // it was cancelled because of the parent, and waits once more
	Queue  bool // it waits for nothing any more
}

// Decide returns what the state of a parent means for those that wait for it. It is pure.
//
// If a parent has ended as the child requires, the edge is removed; if it has ended otherwise, the edge is
// broken; if it is to run once more, the edge is opened again. A blocked job with a broken edge is cancelled.
// One that was cancelled so and has no broken edge any more is blocked again. A blocked job without edges is
// queued.
func Decide(parent event.State, waiting []Waiting) (c Changes) {
	for _, w := range waiting {
		gone := parent.Final() && w.On.Meets(parent)
		broken := parent.Final() && !gone
		switch {
		case gone:
			c.Remove = append(c.Remove, w.Child)
		case broken && !w.Broken:
			c.Break = append(c.Break, w.Child)
		case !broken && w.Broken:
			c.Open = append(c.Open, w.Child)
		}
		s := Step{Child: w.Child}
		blocked := w.State == event.Blocked
		broken = broken || w.OthersBroken
		switch {
		case blocked && broken:
			s.Cancel, blocked = true, false
		case w.State == event.CancelledState && !broken:
			s.Retry, blocked = true, true
		}
		s.Queue = blocked && gone && !w.OthersOpen
		if s.Cancel || s.Retry || s.Queue {
			c.Steps = append(c.Steps, s)
		}
	}
	return c
}
