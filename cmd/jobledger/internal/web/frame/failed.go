package frame

import (
	"fmt"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/query"
)

// Failures are groups of failures by their cause, as pages list them.
type Failures struct {
	Name    string // of the list
	List    []Failed
	Several bool   // they may be of several queues
	More    string // where all are; "": these are
}

// Failed is one of these groups.
type Failed struct {
	Queue, Cause, Detail string
	First, Last          string
	Attempts             int64
	Jobs                 int
	Find                 string // the address of exactly its jobs; "": there is none
}

// FailedOf are the groups of a window, by cause, at most so many; nil: nothing failed.
func (f *Frame) FailedOf(name string, groups query.FailureGroups, s query.Span, most int,
	zone *time.Location) *Failures {
	if len(groups.List) == 0 {
		return nil
	}
	all := &Failures{Name: name, Several: s.Queue == ""}
	if shown := groups.List[:min(len(groups.List), most)]; len(shown) < len(groups.List)+groups.More {
		groups.List = shown
		between := url.Values{"from": {Stamp(s.From.At)}, "to": {Stamp(s.To.At)}}
		if s.Queue != "" {
			between.Set("queue", s.Queue)
		}
		all.More = "/failures?" + f.WithAt(between).Encode()
	}
	clock := func(t time.Time) string { return t.In(zone).Format("15:04:05") }
	for _, g := range groups.List {
		one := Failed{Queue: g.Queue, Cause: words.FailureText(g.Code, g.Exit),
			Detail: words.Shorten(words.Escape(g.Example)),
			First:  clock(g.First), Last: clock(g.Last), Attempts: g.Attempts,
			Jobs: len(g.Jobs)}
		if q := f.FailedJobs(g, s); q != nil {
			one.Find = "/jobs?" + q.Encode()
		}
		all.List = append(all.List, one)
	}
	return all
}

// FailedJobs selects the jobs that met the failure of g within s; nil: jobs are not selected by who failed.
func (f *Frame) FailedJobs(g *query.FailureGroup, s query.Span) url.Values {
	if s.Worker != "" {
		return nil
	}
	q := url.Values{"failure": {g.ID}, "queue": {g.Queue}, "from": {fmt.Sprintf("pos:%d", s.From.Pos+1)},
		"to": {fmt.Sprintf("pos:%d", s.To.Pos)}}
	if f.At != "" {
		q.Set("at", fmt.Sprintf("pos:%d", f.Pos))
	}
	return q
}
