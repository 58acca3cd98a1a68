package queues

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/limit"
)

// Cause is what a job waits for. Where several apply, it is the first of them.
type Cause int

// The causes, in order.
const (
	Dependency Cause = iota // other jobs, or that its hold is lifted
	Schedule                // its time: a delay, or the pause before it is tried again
	Paused                  // that its queue is resumed
	Limited                 // a slot, or a start, that the limits of its queue and its group leave
	Worker                  // a worker that takes it: none served its queue, or all had other jobs
	causes
)

// String returns the word of c.
func (c Cause) String() string {
	return [...]string{"dependency", "schedule", "paused", "limit", "worker"}[c]
}

// Caused is how long the jobs of a queue waited for one cause.
type Caused struct {
	Queue   string
	Cause   Cause
	Jobs    int64         // that waited for it at all
	Waited  time.Duration // the sum
	Longest time.Duration // one of them
}

// Causes adds up for what jobs wait between two moments, transition by transition. Times are in microseconds.
type Causes struct {
	From, To projection.Moment

	queues map[string]*queueCourse
	limits limit.Set
	jobs   map[int64]*waiting
	rules  []event.Event // pauses and limits that are yet to come
}

// waiting is a job that waited, or may yet.
type waiting struct {
	queue, group string
	state        event.State
	since, ready int64 // since when it is not accounted for; when it is or will be ready
	spent        [causes]int64
}

// queueCourse is what kept the ready jobs of a queue waiting, and those of its groups.
type queueCourse struct {
	course
	grouped bool // it has limits of groups within the window
	groups  map[string]*course
}

// Read goes along the transitions, and returns how long the jobs of one queue waited, of one job, or all, by
// queue and cause. Only what they waited between the moments counts. It reads the jobs that were open at the
// beginning, and the transitions of the window once. A slot that is kept for the command of a lost claim is
// not seen as one, nor are starts before the beginning.
func (c *Causes) Read(ctx context.Context, tx *ledger.Tx, queue string, n int64) (rows []Caused, err error) {
	if err := c.begin(ctx, tx); err != nil {
		return nil, err
	}
	var failed error
	r := follow.Transitions{Pos: c.From.Pos}
	err = r.Read(ctx, tx, c.To.Pos, func(t *follow.Transition) {
		failed = cmp.Or(failed, c.add(ctx, tx, t))
	})
	if err = cmp.Or(err, failed, c.rule(c.To.Pos+1)); err != nil {
		return nil, err
	}
	found := make(map[string]*[causes]Caused)
	for number, j := range c.jobs {
		c.account(j, event.Micros(c.To.At))
		if queue != "" && j.queue != queue || n != 0 && number != n {
			continue
		}
		if found[j.queue] == nil {
			found[j.queue] = new([causes]Caused)
		}
		for cause, spent := range j.spent {
			if row := &found[j.queue][cause]; spent > 0 {
				row.Jobs++
				row.Waited += time.Duration(spent) * time.Microsecond
				row.Longest = max(row.Longest, time.Duration(spent)*time.Microsecond)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for cause, row := range found[name] {
			if row.Queue, row.Cause = name, Cause(cause); row.Jobs > 0 {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// begin reads how it was at the beginning, and which rules change later.
func (c *Causes) begin(ctx context.Context, tx *ledger.Tx) (err error) {
	c.queues, c.jobs = make(map[string]*queueCourse), make(map[int64]*waiting)
	if c.limits, err = limit.AsOf(ctx, tx, c.From.Pos); err != nil {
		return err
	}
	for name, l := range c.limits {
		c.of(name).grouped = l.PerGroup > 0 || l.HasGroupRates() || len(l.ActiveExceptions()) > 0
	}
	rules := ledger.Filter{After: c.From.Pos, Until: c.To.Pos, Kinds: []event.Kind{event.KindQueuePaused,
		event.KindQueueResumed, event.KindQueueLimited}}
	for e, err := range tx.Events(ctx, rules) {
		if err != nil {
			return err
		}
		c.rules = append(c.rules, e)
		if b, ok := e.Body.(*event.QueueLimited); ok && (b.Group != "" || b.PerGroup > 0 || b.GroupRate > 0) {
			c.of(b.Queue).grouped = true
		}
	}
	if c.From.Pos == 0 {
		return nil
	}
	paused, err := projection.QueuesAsOf(ctx, tx, c.From)
	for _, q := range paused {
		c.of(q.Name).paused = q.Paused
	}
	if err != nil {
		return err
	}
	open, err := projection.OpenJobsAsOf(ctx, tx, c.From)
	begin := event.Micros(c.From.At)
	for n, j := range open {
		c.jobs[n] = &waiting{queue: j.Queue, group: j.Group, state: j.State, since: begin,
			ready: event.Micros(j.RunAt)}
		if j.State.Held() {
			c.hold(c.jobs[n], 1)
		}
	}
	for name := range c.queues {
		c.note(name, begin)
	}
	return err
}

// add takes the next transition.
func (c *Causes) add(ctx context.Context, tx *ledger.Tx, t *follow.Transition) error {
	if err := c.rule(t.Pos); err != nil {
		return err
	}
	j := c.jobs[t.N]
	if j == nil {
		j = &waiting{queue: t.Queue}
		if c.of(t.Queue).grouped { // the number of a job is the position of its first event
			e, _, err := tx.EventAt(ctx, t.N)
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.Enqueued); ok {
				j.group = b.Group
			}
		}
		c.jobs[t.N] = j
	}
	c.account(j, t.At)
	if t.Kind == event.KindClaimed {
		c.limits.Start(j.queue, j.group, event.FromMicros(t.At))
	}
	if n := follow.Change(t.From, t.To, event.State.Held); n != 0 {
		c.hold(j, n)
		c.note(j.queue, t.At)
	}
	j.state, j.since, j.ready = t.To, t.At, t.Ready
	return nil
}

// rule applies the rules that were changed before the event pos.
func (c *Causes) rule(pos int64) error {
	for len(c.rules) > 0 && c.rules[0].Pos < pos {
		e, queue := c.rules[0], ""
		switch b := e.Body.(type) {
		case *event.QueuePaused:
			queue = b.Queue
			c.of(queue).paused = true
		case *event.QueueResumed:
			queue = b.Queue
			c.of(queue).paused = false
		case *event.QueueLimited:
			queue = b.Queue
		}
		if err := c.limits.Add(e); err != nil {
			return err
		}
		c.note(queue, event.Micros(e.At))
		c.rules = c.rules[1:]
	}
	return nil
}

// of returns the queue called name.
func (c *Causes) of(name string) *queueCourse {
	q := c.queues[name]
	if q == nil {
		q = &queueCourse{groups: make(map[string]*course)}
		c.queues[name] = q
	}
	return q
}

// hold counts a job that is held from now on, or with -1 one that is not any more.
func (c *Causes) hold(j *waiting, n int64) {
	q := c.of(j.queue)
	q.held += n
	if q.grouped && j.group != "" {
		if q.groups[j.group] == nil {
			q.groups[j.group] = new(course)
		}
		q.groups[j.group].held += n
	}
}

// note notes at a moment what keeps the ready jobs of a queue waiting from then on.
func (c *Causes) note(name string, at int64) {
	q, l := c.of(name), c.limits[name]
	q.turn(at, l.Full(q.held), l.NextStart())
	for group, g := range q.groups {
		g.turn(at, l.GroupFull(group, g.held), l.GroupNextStart(group, l.GroupUsed[group]))
	}
}

// account adds up what j waited for up to now.
func (c *Causes) account(j *waiting, now int64) {
	switch j.state {
	case event.Blocked:
		j.spent[Dependency] += now - j.since
	case event.Queued:
		ready := min(max(j.since, j.ready), now)
		j.spent[Schedule] += ready - j.since
		q := c.of(j.queue)
		spent := q.between(ready, now)
		if g := q.groups[j.group]; g != nil {
			g.eachLimited(ready, now, func(from, to int64) { // the queue would have let it begin
				only := q.between(from, to)[Worker]
				spent[Worker], spent[Limited] = spent[Worker]-only, spent[Limited]+only
			})
		}
		for cause, micros := range spent {
			j.spent[cause] += micros
		}
	}
	j.since = now
}

// course is what kept ready jobs waiting, over time: that the queue was paused, its limits, or nothing but a
// worker. It begins with the latter.
type course struct {
	paused bool
	full   bool  // now, by the jobs that are held
	next   int64 // now, when the rate lets the next job start
	held   int64
	turns  []turn // in order
}

// turn is a moment from which on another cause applies.
type turn struct {
	at    int64
	cause Cause
	spent [causes]int64 // up to at
}

// turn notes what is so from at on.
func (c *course) turn(at int64, full bool, next int64) {
	c.pass(at)
	c.full, c.next = full, next
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
