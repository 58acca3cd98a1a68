package queues

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// listView is what the list of queues shows.
type listView struct {
	frame.Frame
	Columns []columnView
	Rows    []rowView
}

// columnView is a column, which the rows can be sorted by.
type columnView struct {
	Title, Href string
	Number      bool
	Sorted      string // ascending or descending; "": the rows are not sorted by it
}

// rowView is a queue in the list.
type rowView struct {
	Course
	Share     string // of the attempts that failed
	Bound     string // how many may run at once; "": any number
	Limits    string // all of them, in words
	Workers   string
	Silent    int // of these
	Schedules int
	by        map[string]float64 // what the row is sorted by
}

// columns are those of the list, by the name in the address.
var columns = []struct{ name, title string }{{"queue", "QUEUE"}, {"ready", "READY"}, {"oldest", "OLDEST"},
	{"later", "LATER"}, {"held", "HELD"}, {"ok", "OK/MIN"}, {"failing", "FAILING"}, {"p50", "WAIT P50"},
	{"p99", "WAIT P99"}, {"clear", "CLEAR IN"}, {"workers", "WORKERS"}, {"schedules", "SCHEDULES"}}

// list shows every queue that was ever used, is served or fed, or has anything set.
func (p *Pages) list(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	by, backwards := strings.CutPrefix(query.Get("sort"), "-")
	if query.Has("sort") && !slices.ContainsFunc(columns, func(c struct{ name, title string }) bool {
		return c.name == by
	}) {
		var names []string
		for _, c := range columns {
			names = append(names, c.name)
		}
		return door.BadInput("sort", fmt.Sprintf("%.40q is not a column; allowed: %s, or - and one of these",
			query.Get("sort"), strings.Join(names, ", ")))
	}
	var shown listView
	figures, now, err := p.BeginStatus(&shown.Frame, r, query, "Queues")
	if err != nil {
		return err
	}
	for _, name := range figures.Setup.Names {
		shown.Rows = append(shown.Rows, newRow(name, figures, now, shown.AtQuery()))
	}
	shown.sort(cmp.Or(by, "queue"), backwards)
	return p.Render(w, "queues", shown)
}

// newRow is the queue called name at now; at is the end of its address.
func newRow(name string, f view.Figures, now time.Time, at string) rowView {
	q := status.Queue{Queue: projection.Queue{Name: name}}
	if i := slices.IndexFunc(f.Queues, func(q status.Queue) bool { return q.Name == name }); i >= 0 {
		q = f.Queues[i]
	}
	pace := f.Paces[name]
	row := rowView{Course: courseOf(q, pace, now), Share: shareOf(pace), Workers: "-",
		Schedules: len(f.Setup.Schedules[name])}
	row.Href = pathOf(name) + at
	if l := f.Setup.Limits[name]; l.Active() {
		row.Limits = words.LimitText(l.Body(name, ""))
		if l.Running > 0 {
			row.Bound = fmt.Sprint(l.Running)
		}
	}
	workers := f.Setup.Workers[name]
	if len(workers) > 0 {
		row.Workers = fmt.Sprint(len(workers))
	}
	for _, w := range workers {
		if w.State == status.Silent {
			row.Silent++
		}
	}
	row.by = map[string]float64{"ready": float64(q.Ready), "later": float64(q.Scheduled),
		"held": float64(held(q)), "workers": float64(len(workers)), "schedules": float64(row.Schedules)}
	if !q.OldestReady.IsZero() {
		row.by["oldest"] = now.Sub(q.OldestReady).Seconds()
	}
	if pace != nil {
		row.by["ok"] = pace.PerMinute(pace.Succeeded)
		row.by["failing"], _ = pace.Share()
		row.by["p50"], row.by["p99"] = pace.Waits.P50.Seconds(), pace.Waits.P99.Seconds()
		clear, ok := pace.ClearIn(q.Ready)
		if row.by["clear"] = clear.Seconds(); q.Ready > 0 && (!ok || q.Paused) {
			row.by["clear"] = float64(view.Unbounded)
		}
	}
	return row
}

// sort sorts the rows, the largest number first or the names from A on, and links the columns.
func (v *listView) sort(by string, backwards bool) {
	slices.SortStableFunc(v.Rows, func(a, b rowView) int {
		c := cmp.Compare(b.by[by], a.by[by])
		if by == "queue" {
			c = strings.Compare(a.Name, b.Name)
		}
		if backwards {
			return -c
		}
		return c
	})
	for _, c := range columns {
		column := columnView{Title: c.title, Number: c.name != "queue" && c.name != "clear"}
		to := c.name
		if c.name == by {
			column.Sorted = "descending"
			if backwards != (by == "queue") {
				column.Sorted = "ascending"
			}
			if !backwards {
				to = "-" + to
			}
		}
		column.Href = "/queues?" + v.WithAt(url.Values{"sort": {to}}).Encode()
		v.Columns = append(v.Columns, column)
	}
}

// courseOf is NewCourse with what is shown of a queue that has never had a job.
func courseOf(q status.Queue, pace *view.Pace, now time.Time) Course {
	c := NewCourse(q, pace, now)
	if pace == nil {
		c.OK, c.Failed, c.P50, c.P99, c.Clear = "-", "-", "-", "-", "-"
	}
	return c
}

// held is how many jobs of q a worker has.
func held(q status.Queue) int64 { return q.Jobs[event.ClaimedState] + q.Jobs[event.Running] }

// shareOf is which part of the attempts of p failed.
func shareOf(p *view.Pace) string {
	if p == nil {
		return "-"
	}
	share, ok := p.Share()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
