package queues

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/limit"
)

// Cause is what a job waits for. If several apply, it is the first of them.
type Cause int

// The causes, in order.
const (
	Dependency Cause = iota // other jobs, or that its hold is lifted
	Schedule                // its time: a delay, or the pause before it is tried again
	Paused                  // that its queue is resumed
	Limited                 // a slot, or a start, that the limits of its queue and its group leave
	Worker                  // a worker that takes it: all had other jobs, or none was there
	none                    // the latter, which is part of Worker
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
	None    time.Duration // of Worker, how much of the sum no worker was there that takes the job; else -1
}

// Causes adds up for what jobs wait between two moments, transition by transition. Times are in microseconds.
type Causes struct {
	From, To projection.Moment
	Lives    []Life

	queues    map[string]*queueCourse
	limits    limit.Set
	jobs      map[int64]*waiting
	demanding map[int64]bool // new jobs that not each worker takes
	rules     []event.Event  // pauses and limits that are yet to come
	services  []service
	changes   []change // of services, those that are yet to come
	announced map[announced]bool
}

// waiting is a job that waited, or may yet.
type waiting struct {
	queue, group string
	demand       string // what it asks of a worker
	state        event.State
	since, ready int64 // since when it is not accounted for; when it is or will be ready
	unannounced  bool  // the process that holds it did not announce that it serves the queue
	spent        [causes]int64
}

// queueCourse is what kept the ready jobs of a queue waiting, and those of its groups.
type queueCourse struct {
	held, clients int64 // jobs that are held, and those of them that keep an unannounced process busy
	paused        bool
	grouped       bool // it has limits of groups within the window
	groups        map[string]*course
	demands       map[string]*demand
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
	c.pass(event.Micros(c.To.At))
	for number, j := range c.jobs {
		c.account(j, event.Micros(c.To.At))
		if queue != "" && j.queue != queue || n != 0 && number != n {
			continue
		}
		if found[j.queue] == nil {
			found[j.queue] = new([causes]Caused)
		}
		alone := j.spent[none]
		j.spent[Worker], j.spent[none] = j.spent[Worker]+alone, 0
		for cause, spent := range j.spent {
			if row := &found[j.queue][cause]; spent > 0 {
				row.Jobs++
				row.Waited += time.Duration(spent) * time.Microsecond
				row.Longest = max(row.Longest, time.Duration(spent)*time.Microsecond)
			}
		}
		found[j.queue][Worker].None += time.Duration(alone) * time.Microsecond
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for cause, row := range found[name] {
			if row.Queue, row.Cause = name, Cause(cause); row.Cause != Worker {
				row.None = -1
			}
			if row.Jobs > 0 {
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
	if err := c.findDemanding(ctx, tx); err != nil {
		return err
	}
	c.serve()
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
	c.pass(begin)
	for n, j := range open {
		c.jobs[n] = &waiting{queue: j.Queue, group: j.Group, demand: c.course(j, begin), state: j.State,
			since: begin, ready: event.Micros(j.RunAt)}
		if j.State.Held() {
			c.hold(c.jobs[n], 1, j.Worker.Boot)
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
	c.pass(t.At)
	j := c.jobs[t.N]
	if j == nil {
		as := projection.Job{Queue: t.Queue}
		if c.of(t.Queue).grouped || t.N <= c.From.Pos || c.demanding[t.N] {
			e, _, err := tx.EventAt(ctx, t.N) // the number of a job is the position of its first event
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.Enqueued); ok {
				as.Group, as.Version, as.Requires = b.Group, b.Version, b.Requires
			}
		}
		j = &waiting{queue: t.Queue, group: as.Group, demand: c.course(as, t.At)}
		c.jobs[t.N] = j
	}
	c.account(j, t.At)
	boot := ""
	if t.Kind == event.KindClaimed {
		c.limits.Start(j.queue, j.group, event.FromMicros(t.At))
		w, err := tx.WorkerOf(ctx, t.Worker)
		if err != nil {
			return err
		}
		boot = w.Boot
	}
	if n := follow.Change(t.From, t.To, event.State.Held); n != 0 {
		c.hold(j, n, boot)
		c.note(j.queue, t.At)
	}
	j.state, j.since, j.ready = t.To, t.At, t.Ready
	return nil
}

// rule applies the rules that were changed before the event pos.
func (c *Causes) rule(pos int64) error {
	for len(c.rules) > 0 && c.rules[0].Pos < pos {
		e, queue := c.rules[0], ""
		c.pass(event.Micros(e.At))
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
		q = &queueCourse{groups: make(map[string]*course), demands: make(map[string]*demand)}
		c.queues[name] = q
	}
	return q
}

// hold counts a job that the process with this boot holds from now on, or with -1 no longer holds.
func (c *Causes) hold(j *waiting, n int64, boot string) {
	q := c.of(j.queue)
	q.held += n
	if n > 0 {
		j.unannounced = !c.announced[announced{boot, j.queue}]
	}
	if j.unannounced {
		q.clients += n
	}
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
	now := facts{paused: q.paused, full: l.Full(q.held), next: l.NextStart()}
	for _, d := range q.demands {
		now.served = d.workers > 0 || q.clients > 0
		d.turn(at, now)
	}
	for group, g := range q.groups {
		g.turn(at, facts{full: l.GroupFull(group, g.held), next: l.GroupNextStart(group, l.GroupUsed[group])})
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
		d := q.demands[j.demand]
		spent := d.between(ready, now)
		if g := q.groups[j.group]; g != nil {
			g.eachLimited(ready, now, func(from, to int64) { // the queue would have let it begin
				only := d.between(from, to)
				for _, cause := range []Cause{Worker, none} {
					spent[cause], spent[Limited] = spent[cause]-only[cause], spent[Limited]+only[cause]
				}
			})
		}
		for cause, micros := range spent {
			j.spent[cause] += micros
		}
	}
	j.since = now
}
