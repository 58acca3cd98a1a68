package print

import (
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/status"
)

// Limits is a table of the limits of queues, with the claims that they bind.
func Limits(found []status.Limited, zone *time.Location) *words.Table {
	columns := []words.Column{{Title: "QUEUE", Least: 8}, {Title: "LIVE", Right: true},
		{Title: "LIMIT", Right: true}, {Title: "PER GROUP", Right: true, Drop: 3}, {Title: "RATE", Drop: 4},
		{Title: "READY", Right: true},
		{Title: "SINCE", Drop: 1},
		{Title: "BY", Drop: 2, Least: 8}, {Title: "REASON", Least: 8}}
	exceptions := slices.ContainsFunc(found,
		func(l status.Limited) bool { return len(l.ActiveExceptions()) > 0 })
	if exceptions {
		columns = slices.Insert(columns, 1, words.Column{Title: "GROUP", Least: 8})
	}
	ageing := slices.ContainsFunc(found, func(l status.Limited) bool { return l.Ageing > 0 })
	if ageing {
		columns = append(columns, words.Column{Title: "AGEING", Right: true})
	}
	t := &words.Table{Columns: columns}
	add := func(queue, group string, by time.Duration, cells ...string) {
		if ageing && by > 0 {
			cells = append(cells, words.Duration(by))
		} else if ageing {
			cells = append(cells, "-")
		}
		if exceptions {
			t.Add(append([]string{queue, group}, cells...)...)
		} else {
			t.Add(append([]string{queue}, cells...)...)
		}
	}
	since := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return words.Millis(at.In(zone))
	}
	for _, l := range found {
		add(l.Queue, "-", l.Ageing, fmt.Sprint(l.Live), orDash(l.Running), perGroup(l.Spec), rate(l.Rate),
			fmt.Sprint(l.Ready), since(l.Since), l.Actor, l.Reason)
		for _, x := range l.ActiveExceptions() {
			add(l.Queue, x.Group, 0, fmt.Sprint(l.Groups[x.Group]), orDash(x.Running), "-", rate(x.Rate), "-",
				since(x.Since),
				x.Actor, x.Reason)
		}
	}
	return t
}

// perGroup is what bounds each group.
func perGroup(s limit.Spec) string {
	switch {
	case s.PerGroupRate.N == 0:
		return orDash(s.PerGroup)
	case s.PerGroup == 0:
		return rate(s.PerGroupRate)
	}
	return fmt.Sprintf("%d, %s", s.PerGroup, rate(s.PerGroupRate))
}

// rate is r in the form that the flag takes.
func rate(r limit.Rate) string {
	if r.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%s", r.N, words.Duration(r.Per))
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// Groups is a table of the groups of a queue with these limits. If a group has an exception, it has the limit
// of each group.
func Groups(found []group.Waiting, l limit.Limit, now time.Time) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "GROUP", Least: 8}, {Title: "QUEUED", Right: true},
		{Title: "LIVE", Right: true}, {Title: "NEXT"}}}
	exceptions := len(l.ActiveExceptions()) > 0
	if exceptions {
		t.Columns = slices.Insert(t.Columns, 3, words.Column{Title: "LIMIT", Right: true})
	}
	for _, g := range found {
		next := "-"
		switch at := event.FromMicros(g.Eligible); {
		case g.Eligible == 0 && g.Queued > 0:
			next = "when one ends"
		case g.Eligible == 0:
		case at.After(now):
			next = words.Millis(at.In(now.Location()))
		default:
			next = "ready"
		}
		cells := []string{g.Group, fmt.Sprint(g.Queued), fmt.Sprint(g.Live), next}
		if exceptions {
			cells = slices.Insert(cells, 3, orDash(g.Bound))
		}
		t.Add(cells...)
	}
	return t
}

// GroupJSON is a group of a queue for programs.
type GroupJSON struct {
	Queue  string  `json:"queue"`
	Group  string  `json:"group"`
	Queued int64   `json:"queued"`
	Live   int64   `json:"live"`
	NextAt *string `json:"next_at"` // when its next job may start; null: none is queued, or it is at its limit

	RunningLimit int `json:"running_limit,omitempty"`
}

// NewGroupJSON is g for programs.
func NewGroupJSON(queue string, g group.Waiting) GroupJSON {
	out := GroupJSON{Queue: queue, Group: g.Group, Queued: g.Queued, Live: g.Live, RunningLimit: g.Bound}
	if g.Eligible > 0 {
		out.NextAt = words.TimeOrNull(event.FromMicros(g.Eligible))
	}
	return out
}

// LimitJSON is the limits of a queue for programs; null: no such limit.
type LimitJSON struct {
	Queue   string  `json:"queue"`
	Running *int    `json:"running"`
	Since   *string `json:"since"`
	Actor   *string `json:"actor"`
	Reason  *string `json:"reason"`

	PerGroup *int `json:"per_group,omitempty"`

	Rate    int     `json:"rate,omitempty"` // likewise:
	RatePer float64 `json:"rate_per,omitempty"`
	Burst   int     `json:"burst,omitempty"`

	GroupRate    int     `json:"group_rate,omitempty"` // of each group; likewise:
	GroupRatePer float64 `json:"group_rate_per,omitempty"`
	GroupBurst   int     `json:"group_burst,omitempty"`
	Ageing       float64 `json:"ageing,omitempty"` // seconds
	// NextStart is the time from which the rate lets the next job start, if that was known.
	NextStart *string `json:"next_start,omitempty"`
}

// NewLimitJSON is l for programs.
func NewLimitJSON(l limit.Limit) LimitJSON {
	out := LimitJSON{Queue: l.Queue, Since: words.TimeOrNull(l.Since), Actor: words.TextOrNull(l.Actor),
		Reason: words.TextOrNull(l.Reason), Running: words.OrNull(l.Running), PerGroup: words.OrNull(l.PerGroup)}
	out.Rate, out.RatePer, out.Burst = l.Rate.N, l.Rate.Per.Seconds(), l.Rate.Burst
	out.GroupRate, out.GroupRatePer = l.PerGroupRate.N, l.PerGroupRate.Per.Seconds()
	out.GroupBurst, out.Ageing = l.PerGroupRate.Burst, l.Ageing.Seconds()
	if next := l.NextStart(); next > 0 {
		out.NextStart = words.TimeOrNull(event.FromMicros(next))
	}
	return out
}

// LimitedJSON is the JSON form of the limits of a queue, with the claims that they bind.
type LimitedJSON struct {
	LimitJSON
	Live   int64           `json:"live"`
	Ready  int64           `json:"ready"`
	Groups []ExceptionJSON `json:"groups,omitempty"` // by name
}

// ExceptionJSON is the JSON form of the limits of one group that differ from those of the others.
type ExceptionJSON struct {
	Group   string  `json:"group"`
	Running *int    `json:"running"` // null: no exception
	Since   *string `json:"since"`
	Actor   *string `json:"actor"`
	Reason  *string `json:"reason"`
	Live    int64   `json:"live"`

	Rate    int     `json:"rate,omitempty"`
	RatePer float64 `json:"rate_per,omitempty"`
	Burst   int     `json:"burst,omitempty"`
}

// NewLimitedJSON is l for programs.
func NewLimitedJSON(l status.Limited) LimitedJSON {
	out := LimitedJSON{LimitJSON: NewLimitJSON(l.Limit), Live: l.Live, Ready: l.Ready}
	for _, x := range l.ActiveExceptions() {
		out.Groups = append(out.Groups, newExceptionJSON(x, l.Groups[x.Group]))
	}
	return out
}

func newExceptionJSON(x limit.Exception, live int64) ExceptionJSON {
	return ExceptionJSON{Group: x.Group, Running: words.OrNull(x.Running), Since: words.TimeOrNull(x.Since),
		Actor: words.TextOrNull(x.Actor), Reason: words.TextOrNull(x.Reason), Live: live, Rate: x.Rate.N,
		RatePer: x.Rate.Per.Seconds(), Burst: x.Rate.Burst}
}

// LimitedThenJSON is the JSON form of the limits of a queue at a moment, with the claims that they bounded.
type LimitedThenJSON struct {
	LimitedJSON
	AsOf *string `json:"as_of" openapi:"optional=as_of,pos"`
	Pos  int64   `json:"pos"`
}

// NewLimitedThenJSON is the JSON form of l at m.
func NewLimitedThenJSON(l status.Limited, m projection.Moment) LimitedThenJSON {
	return LimitedThenJSON{NewLimitedJSON(l), words.TimeOrNull(m.At), m.Pos}
}

// LimitSetJSON is the limits of a queue after they were set, for programs.
type LimitSetJSON struct {
	LimitJSON
	Changed bool `json:"changed"` // false: they were so already
}

// ExceptionSetJSON is what bounds a group of a queue after it was set, for programs.
type ExceptionSetJSON struct {
	Queue string `json:"queue"`
	ExceptionJSON
	Changed bool `json:"changed"` // false: it was so already
}

// NewExceptionSetJSON is the exception of a group of l, with its live claims, for programs.
func NewExceptionSetJSON(l limit.Limit, group string, live int64, changed bool) ExceptionSetJSON {
	x := l.Exceptions[group]
	x.Group = group
	return ExceptionSetJSON{l.Queue, newExceptionJSON(x, live), changed}
}

// ExceptionSet says in a sentence what bounds a group of a queue, and whether that was so already.
func ExceptionSet(l limit.Limit, group string, changed bool) string {
	b := l.Exceptions[group].Body(l.Queue, group, "")
	return limitSet(b, changed)
}

// LimitSet says in a sentence what the limits of a queue are, and whether that was so already.
func LimitSet(l limit.Limit, changed bool) string {
	return limitSet(l.Body(l.Queue, ""), changed)
}

func limitSet(b *event.QueueLimited, changed bool) string {
	text := fmt.Sprintf("queue %s: %s", b.Queue, words.LimitText(b))
	if !changed {
		text += ", as before"
	}
	return text
}
