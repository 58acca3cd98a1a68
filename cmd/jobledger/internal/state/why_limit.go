package state

import (
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/limit"
)

// maxHolders is how many jobs that hold a slot an explanation names.
const maxHolders = 5

// limit says what the limits of the queue mean for the job, and whether they keep it from starting.
func (r *reasons) limit() (full bool) {
	l := r.Limit
	if l.Ageing > 0 {
		r.say("In the queue %s one more of priority counts as %s of waiting.", l.Queue, words.Duration(l.Ageing))
	}
	if l.Running > 0 {
		full = r.bound(fmt.Sprintf("queue %s", l.Queue), l.Running, r.Holders)
	}
	if bound := l.GroupBound(r.Job.Group); bound > 0 {
		var own []projection.Job
		for _, j := range r.Holders {
			if j.Group == r.Job.Group {
				own = append(own, j)
			}
		}
		full = r.bound(fmt.Sprintf("group %q", r.Job.Group), bound, own) || full
	}
	full = r.rate(fmt.Sprintf("queue %s", l.Queue), l.Rate, l.UsedUntil, l.NextStart()) || full
	group := l.GroupRate(r.Job.Group)
	return r.rate(fmt.Sprintf("group %q", r.Job.Group), group, r.GroupUsed,
		l.GroupNextStart(r.Job.Group, r.GroupUsed)) || full
}

// rate says what a rate is, and when it lets the next job start; used is 0 before the first start.
func (r *reasons) rate(of string, rate limit.Rate, used, start int64) (waits bool) {
	if rate.N == 0 {
		return false
	}
	text := fmt.Sprintf("The rate of the %s is %s", of, words.RateText(rate.N, rate.Per))
	if next := event.FromMicros(start); used > 0 && next.After(r.now) {
		r.wait("rate", "%s. The next job may start at %s.", text, r.local(next))
		return true
	}
	r.say("%s.", text)
	return false
}

// bound says who holds the slots of what has so many at most.
func (r *reasons) bound(what string, most int, holders []projection.Job) (full bool) {
	var names []string
	for _, j := range holders[:min(len(holders), maxHolders)] {
		names = append(names, fmt.Sprintf("%s (%s, since %s)", j.ID, j.Worker.Name, r.local(j.ClaimedAt)))
	}
	if more := len(holders) - maxHolders; more > 0 {
		names = append(names, words.Count(int64(more), "further job"))
	}
	text := fmt.Sprintf("The limit of the %s is %d at once, and %d run", what, most, len(holders))
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	if len(holders) < most {
		r.say("%s.", text)
		return false
	}
	r.wait("limit", "%s. The next may start when one of them ends%s.", text,
		r.hint("; 'jobledger limit -q %s' shows and changes the limit", r.Job.Queue))
	return true
}
