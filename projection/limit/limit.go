package limit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Spec is what a limit bounds. The zero Spec bounds nothing.
type Spec struct {
	Running  int // how many jobs may be claimed or running at once; 0: any number
	PerGroup int // how many of each group; 0: any number
	Rate     Rate

	PerGroupRate Rate // of each group

	// Ageing bounds for how long higher priorities keep a job waiting: a job comes before one of a priority
	// that is higher by n if it was ready n times Ageing earlier. 0: a priority always comes first.
	Ageing time.Duration
}

// Rate bounds how many jobs of a queue, or of a group, start within a time. They are spread evenly: N jobs
// within Per are one within each N-th of it. The zero Rate bounds nothing.
type Rate struct {
	N     int           // how many; 0: any number
	Per   time.Duration // 0 without N
	Burst int           // how many may start at once after a pause; 0: one
}

// interval returns the time between two starts in microseconds, rounded up so that no time has one too many.
func (r Rate) interval() int64 {
	if r.N == 0 {
		return 0
	}
	return (r.Per.Microseconds() + int64(r.N) - 1) / int64(r.N)
}

// allowance returns for how long, in microseconds, a burst may be ahead of the rate.
func (r Rate) allowance() int64 { return int64(max(r.Burst, 1)-1) * r.interval() }

// nextStart returns the time, in microseconds, from which r lets the next job start, where the starts so far
// use it up until used.
func (r Rate) nextStart(used int64) int64 {
	if r.N == 0 {
		return 0
	}
	return max(0, used-r.allowance())
}

// room returns how many jobs r lets start at a time in microseconds, up to most.
func (r Rate) room(used, at int64, most int) int {
	if r.N == 0 {
		return most
	}
	ahead := r.allowance() - max(0, used-at)
	if ahead < 0 {
		return 0
	}
	return int(min(int64(most), ahead/r.interval()+1))
}

// start returns until when r is used up after a start at a time in microseconds.
func (r Rate) start(used, at int64) int64 { return max(used, at) + r.interval() }

// GroupSpec has the limits of one group that differ from those of the others. The zero GroupSpec is not an
// exception.
type GroupSpec struct {
	Running int  // how many of its jobs may be claimed or running at once; 0: as the other groups
	Rate    Rate // zero: as the other groups
}

// Exception is what bounds one group, derived from the events.
type Exception struct {
	GroupSpec
	Group  string
	Since  time.Time // of the event that set it
	Actor  string    // of that event
	Reason string    // of that event
}

// Limit is the limits of a queue, derived from its events.
type Limit struct {
	Spec
	// Exceptions are those that the queue ever had, by group. A change makes another map.
	Exceptions map[string]Exception

	Queue  string
	Since  time.Time // of the event that set Spec; zero: never
	Actor  string    // of that event
	Reason string    // of that event

	// UsedUntil is the time, in microseconds, until which the starts so far use up the rate; 0: there were none
	// since the rate was set. It is known for rows, and for folds that see each start.
	UsedUntil int64
	// GroupUsed is the same for the rates of groups, by group. It is known of folds.
	GroupUsed map[string]int64
}

// NextStart returns the time, in microseconds, from which the rate lets the next job start.
func (l Limit) NextStart() int64 { return l.Rate.nextStart(l.UsedUntil) }

// StartRoom returns how many jobs the rate lets start at a time in microseconds, up to most.
func (l Limit) StartRoom(at int64, most int) int {
	return l.Rate.room(l.UsedUntil, at, most)
}

// Start counts a start at a time in microseconds.
func (l *Limit) Start(at int64) {
	if l.Rate.N > 0 {
		l.UsedUntil = l.Rate.start(l.UsedUntil, at)
	}
}

// GroupRate returns the rate of a group: what its exception says, or else PerGroupRate.
func (l Limit) GroupRate(group string) Rate {
	if group == "" {
		return Rate{}
	}
	if x := l.Exceptions[group]; x.Rate.N > 0 {
		return x.Rate
	}
	return l.PerGroupRate
}

// HasGroupRates reports whether any group has a rate.
func (l Limit) HasGroupRates() bool {
	for _, x := range l.Exceptions {
		if x.Rate.N > 0 {
			return true
		}
	}
	return l.PerGroupRate.N > 0
}

// GroupNextStart returns the time, in microseconds, from which the rate of a group lets its next job start,
// where the starts so far use it up until used.
func (l Limit) GroupNextStart(group string, used int64) int64 {
	return l.GroupRate(group).nextStart(used)
}

// startGroup counts a start of a job of a group.
func (l *Limit) startGroup(group string, at int64) {
	r := l.GroupRate(group)
	if r.N == 0 {
		return
	}
	if l.GroupUsed == nil {
		l.GroupUsed = make(map[string]int64)
	}
	l.GroupUsed[group] = r.start(l.GroupUsed[group], at)
}

// usedAfter returns GroupUsed after a change to other limits: without the groups that have another rate.
func (l Limit) usedAfter(to Limit) (used map[string]int64) {
	for name, until := range l.GroupUsed {
		if l.GroupRate(name) != to.GroupRate(name) {
			continue
		}
		if used == nil {
			used = make(map[string]int64)
		}
		used[name] = until
	}
	return used
}

// Has reports whether the limits of the queue, or with a group an exception for that, were ever set.
func (l Limit) Has(group string) bool {
	_, ok := l.Exceptions[group]
	return ok || group == "" && !l.Since.IsZero()
}

// Active reports whether l bounds anything.
func (l Limit) Active() bool { return l.Spec != Spec{} || len(l.ActiveExceptions()) > 0 }

// ActiveExceptions returns the exceptions that are in force, by group.
func (l Limit) ActiveExceptions() (found []Exception) {
	for _, name := range slices.Sorted(maps.Keys(l.Exceptions)) {
		if x := l.Exceptions[name]; x.GroupSpec != (GroupSpec{}) {
			found = append(found, x)
		}
	}
	return found
}

// Full reports whether no job may start while this many are live.
func (l Limit) Full(live int64) bool { return l.Running > 0 && live >= int64(l.Running) }

// GroupBound returns how many jobs of a group may be claimed or running at once: what its exception says, or
// else PerGroup. 0: any number.
func (l Limit) GroupBound(group string) int {
	if group == "" {
		return 0
	}
	if x := l.Exceptions[group]; x.Running > 0 {
		return x.Running
	}
	return l.PerGroup
}

// GroupFull reports whether no job of a group may start while this many of it are live.
func (l Limit) GroupFull(group string, live int64) bool {
	bound := l.GroupBound(group)
	return bound > 0 && live >= int64(bound)
}

// Evolve returns the limits that e sets in place of l. A rate that stays the same goes on counting; another
// one begins at once. Exceptions remain until their groups or the queue as a whole are not limited any more.
// It is pure.
func (l Limit) Evolve(e event.Event) (Limit, error) {
	b, ok := e.Body.(*event.QueueLimited)
	if !ok {
		return Limit{}, fmt.Errorf("%w: %T does not limit a queue", ledger.ErrUnknownKind, e.Body)
	}
	exception := Exception{groupSpecOf(b), b.Group, e.At, e.Actor, b.Reason}
	if b.Group != "" {
		after := l
		after.Queue, after.Exceptions = b.Queue, map[string]Exception{b.Group: exception}
		for name, x := range l.Exceptions {
			if name != b.Group {
				after.Exceptions[name] = x
			}
		}
		after.GroupUsed = l.usedAfter(after)
		return after, nil
	}
	after := Limit{Spec: SpecOf(b), Exceptions: l.Exceptions, Queue: b.Queue, Since: e.At, Actor: e.Actor,
		Reason: b.Reason}
	if after.Rate == l.Rate {
		after.UsedUntil = l.UsedUntil
	}
	if active := l.ActiveExceptions(); len(active) > 0 && after.Spec == (Spec{}) {
		after.Exceptions = maps.Clone(l.Exceptions)
		for _, x := range active {
			exception.Group = x.Group
			after.Exceptions[x.Group] = exception
		}
	}
	after.GroupUsed = l.usedAfter(after)
	return after, nil
}

// Body returns the event that sets s for a group of a queue.
func (s GroupSpec) Body(queue, group, reason string) *event.QueueLimited {
	return &event.QueueLimited{Queue: queue, Group: group, Running: s.Running, Rate: s.Rate.N,
		RatePer: s.Rate.Per, Burst: s.Rate.Burst, Reason: reason}
}

func groupSpecOf(b *event.QueueLimited) GroupSpec {
	return GroupSpec{Running: b.Running, Rate: Rate{N: b.Rate, Per: b.RatePer, Burst: b.Burst}}
}

// Body returns the event that sets s for a queue.
func (s Spec) Body(queue, reason string) *event.QueueLimited {
	return &event.QueueLimited{Queue: queue, Running: s.Running, PerGroup: s.PerGroup, Rate: s.Rate.N,
		RatePer: s.Rate.Per, Burst: s.Rate.Burst, GroupRate: s.PerGroupRate.N,
		GroupRatePer: s.PerGroupRate.Per, GroupBurst: s.PerGroupRate.Burst,
		Ageing: s.Ageing, Reason: reason}
}

// SpecOf returns what b sets.
func SpecOf(b *event.QueueLimited) Spec {
	return Spec{Running: b.Running, PerGroup: b.PerGroup,
		Rate:         Rate{N: b.Rate, Per: b.RatePer, Burst: b.Burst},
		PerGroupRate: Rate{N: b.GroupRate, Per: b.GroupRatePer, Burst: b.GroupBurst}, Ageing: b.Ageing}
}

// Set is the limits of each queue that ever had any.
type Set map[string]Limit

// Add takes the next event; those of other kinds change nothing.
func (s Set) Add(e event.Event) error {
	if e.Kind() != event.KindQueueLimited {
		return nil
	}
	b := e.Body.(*event.QueueLimited)
	l, err := s[b.Queue].Evolve(e)
	if err == nil {
		s[l.Queue] = l
	}
	return err
}

// Start counts the claim of a job of a queue and of a group; "": of none.
func (s Set) Start(queue, group string, at time.Time) {
	if l, ok := s[queue]; ok {
		l.Start(event.Micros(at))
		l.startGroup(group, event.Micros(at))
		s[queue] = l
	}
}

// Clone returns a copy that Start does not share with s.
func (s Set) Clone() Set {
	copied := maps.Clone(s)
	for queue, l := range copied {
		l.GroupUsed = maps.Clone(l.GroupUsed)
		copied[queue] = l
	}
	return copied
}

// List returns the limits by the names of their queues.
func (s Set) List() []Limit {
	list := make([]Limit, 0, len(s))
	for _, l := range s {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b Limit) int { return strings.Compare(a.Queue, b.Queue) })
	return list
}
