package queues

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

// boundsView has the limits of a queue, and the claims that they bind.
type boundsView struct {
	Text string // in words
	By   string // who set it, when and why; "": it was never set
	Rows []boundView
	More int // groups that are left out
}

// boundView has the limits of the queue, or of one of its groups.
type boundView struct {
	Group, Href string // "": it is the queue
	Now         int64
	Limit       int // 0: any number
	Waiting     int64
	Exception   string // the address of its form; "": it has none
	Rate        string // "": none of its own
}

// defaultsView is what the jobs of a queue get by default.
type defaultsView struct {
	Attempts, Runtime, Backoff, By string
	Schedules                      []fedView
}

// fedView is a schedule that feeds the queue.
type fedView struct{ Name, Href, Times, Next string }

// maxGroups is how many groups the page of a queue shows.
const maxGroups = 20

// addSetup adds the settings of q at m.
func (v *queueView) addSetup(ctx context.Context, tx *ledger.Tx, m projection.Moment, q status.Queue,
	setup status.Setup, zone *time.Location) error {
	groups, l, err := status.Groups(ctx, tx, q.Name, m)
	if err != nil {
		return err
	}
	v.Bounds = boundsView{Text: words.LimitText(l.Body(q.Name, "")),
		By: words.SetBy(l.Since, l.Actor, l.Reason, zone)}
	whole := boundView{Now: held(q), Limit: l.Running, Waiting: q.Ready}
	v.Bounds.Rows = append(v.Bounds.Rows, whole)
	seen := make(map[string]bool)
	for _, g := range groups {
		seen[g.Group] = true
		v.addGroup(l, g)
	}
	for _, x := range l.ActiveExceptions() {
		if !seen[x.Group] {
			v.addGroup(l, group.Waiting{Group: x.Group, Bound: l.GroupBound(x.Group)})
		}
	}
	if n := len(v.Bounds.Rows); n > maxGroups {
		v.Bounds.Rows, v.Bounds.More = v.Bounds.Rows[:maxGroups], n-maxGroups
	}
	v.addDefaults(setup.Defaults[q.Name], zone)
	for _, s := range setup.Schedules[q.Name] {
		next := "-"
		switch {
		case s.Paused:
			next = "paused"
		case !s.Next.IsZero():
			next = words.Time(s.Next.In(zone))
		}
		v.Defaults.Schedules = append(v.Defaults.Schedules,
			fedView{s.Spec.Name, v.ScheduleAddress(s.Spec.Name), words.TimesText(s.Spec), next})
	}
	return nil
}

// addGroup adds g, which is bound by l.
func (v *queueView) addGroup(l limit.Limit, g group.Waiting) {
	row := boundView{Group: g.Group, Now: g.Live, Limit: g.Bound, Waiting: g.Queued,
		Href: "/jobs?" + v.WithAt(url.Values{"queue": {v.Name}, "group": {g.Group}}).Encode()}
	if x := l.Exceptions[g.Group]; x.GroupSpec != (limit.GroupSpec{}) {
		row.Exception = pathOf(v.Name) + "/limit?" + url.Values{"group": {g.Group}}.Encode()
		if x.Rate.N > 0 {
			row.Rate = words.RateText(x.Rate.N, x.Rate.Per)
		}
	}
	v.Bounds.Rows = append(v.Bounds.Rows, row)
}

// addDefaults adds d, and the values that hold without it.
func (v *queueView) addDefaults(d defaults.Defaults, zone *time.Location) {
	v.Defaults = defaultsView{Attempts: fmt.Sprintf("%d, as without a default", projection.DefaultMaxAttempts),
		Runtime: "no limit", Backoff: words.BackoffText(event.DefaultBackoff) + ", as without a default"}
	if d.MaxAttempts > 0 {
		v.Defaults.Attempts = fmt.Sprint(d.MaxAttempts)
	}
	if d.MaxRuntime > 0 {
		v.Defaults.Runtime = words.Duration(d.MaxRuntime)
	}
	if d.Backoff != (event.Backoff{}) {
		v.Defaults.Backoff = words.BackoffText(d.Backoff)
	}
	v.Defaults.By = words.SetBy(d.Since, d.Actor, d.Reason, zone)
}
