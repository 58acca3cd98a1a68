package queues

import "sort"

// course is what kept ready jobs waiting, over time: that the queue was paused, its limits, or nothing but a
// worker. It begins with the latter.
type course struct {
	facts
	held  int64  // of a group
	turns []turn // in order
}

// facts are what is so now.
type facts struct {
	paused bool
	full   bool  // by the jobs that are held
	next   int64 // when the rate lets the next job start
	served bool  // some worker takes the jobs
}

// turn is a moment from which on another cause applies.
type turn struct {
	at    int64
	cause Cause
	spent [causes]int64 // up to at
}

// turn records a change of the state at the time at.
func (c *course) turn(at int64, now facts) {
	c.pass(at)
	c.facts = now
	c.add(at)
}

// pass notes that the next job could start by the rate before now.
func (c *course) pass(now int64) {
	if at := c.next; at > 0 && at <= now {
		c.next = 0
		c.add(at)
	}
}

func (c *course) add(at int64) {
	cause := Worker
	switch {
	case c.paused:
		cause = Paused
	case c.full || c.next > at:
		cause = Limited
	case !c.served:
		cause = none
	}
	last := len(c.turns) - 1
	switch {
	case last < 0:
		c.turns = []turn{{cause: Worker}}
		last = 0
	case c.turns[last].at == at:
		c.turns[last].cause = cause
		return
	}
	if c.turns[last].cause != cause {
		c.turns = append(c.turns, turn{at, cause, c.until(at)})
	}
}

// until returns how long each cause has applied up to at.
func (c *course) until(at int64) (spent [causes]int64) {
	i := sort.Search(len(c.turns), func(i int) bool { return c.turns[i].at > at }) - 1
	if i < 0 {
		spent[Worker] = at
		return spent
	}
	spent = c.turns[i].spent
	spent[c.turns[i].cause] += at - c.turns[i].at
	return spent
}

// between returns how long each cause applied between two moments, of which the second is not before the last
// turn.
func (c *course) between(from, to int64) (spent [causes]int64) {
	c.pass(to)
	before := c.until(from)
	for cause, micros := range c.until(to) {
		spent[cause] = micros - before[cause]
	}
	return spent
}

// eachLimited calls fn with each time between two moments in which limits applied.
func (c *course) eachLimited(from, to int64, fn func(from, to int64)) {
	c.pass(to)
	first := sort.Search(len(c.turns), func(i int) bool { return c.turns[i].at > from }) - 1
	for i := max(first, 0); i < len(c.turns) && c.turns[i].at < to; i++ {
		end := to
		if i+1 < len(c.turns) {
			end = min(to, c.turns[i+1].at)
		}
		if c.turns[i].cause == Limited {
			fn(max(from, c.turns[i].at), end)
		}
	}
}
