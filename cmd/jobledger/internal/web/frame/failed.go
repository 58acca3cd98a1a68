package frame

import (
	"fmt"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/query"
)

// Failed is a group of failures by their cause, as pages list it.
type Failed struct {
	Queue, Cause, Detail string
	First, Last          string
	Attempts             int64
	Jobs                 int
	Find                 string // the address of exactly its jobs; "": there is none
}

// FailedOf are the groups of a window, by cause, with times as in layout.
func (f *Frame) FailedOf(groups query.FailureGroups, s query.Span, layout string, zone *time.Location) (
	all []Failed) {
	for _, g := range groups.List {
		one := Failed{Queue: g.Queue, Cause: words.FailureText(g.Code, g.Exit), Detail: words.Shorten(g.Example),
			First: g.First.In(zone).Format(layout), Last: g.Last.In(zone).Format(layout), Attempts: g.Attempts,
			Jobs: len(g.Jobs)}
		if q := f.FailedJobs(g, s); q != nil {
			one.Find = "/jobs?" + q.Encode()
		}
		all = append(all, one)
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
