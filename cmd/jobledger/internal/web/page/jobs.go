package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// pageJobs is how many jobs a page shows, unless limit says another number.
const pageJobs = 50

// jobsView is what the page of jobs shows.
type jobsView struct {
	frame.Frame
	Jobs   *words.Table // nil: none matches
	Count  string
	Next   string // address of the next page; ""
	Ended  string // how far the search came in its time, and Next goes on; "": to its end
	Absent string // which jobs have left the ledger and are not in the list; ""
	Filter url.Values
	States []frame.Choice
	Tabs   []tabView
	Chips  []chipView
	Select []frame.Param // the filter, where an act on all that match is possible
	Acts   bool          // acts on the jobs of the page are possible
	Seen   int64         // a position of which the list has everything

	FindKeys []string // of the terms of a search
	Names    names
}

// jobsPage shows what the verb list prints.
func (p *Pages) jobsPage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	if to, err := p.onlyJob(r, query); err != nil || to != "" {
		if err == nil {
			p.Door.SeeOther(w, r, to)
		}
		return err
	}
	if !query.Has("limit") {
		query.Set("limit", strconv.Itoa(pageJobs))
	}
	limit, err := api.ResourceAt("/jobs").Check(query)
	if err != nil {
		return err
	}
	view := jobsView{Filter: query, FindKeys: find.FindKeys, Chips: chipsOf(r.URL.Path, query)}
	for _, name := range find.StateNames() {
		view.States = append(view.States, frame.Choice{Value: name, Chosen: slices.Contains(query["state"], name)})
	}
	if view.Seen, err = p.Tail(r.Context()); err != nil { // what happens from here on has moved on
		return err
	}
	asked, err := p.JobsOf(r.Context(), query)
	if err != nil {
		return err
	}
	found, after, ended, err := p.Page(r.Context(), asked, limit, p.SearchTime(query))
	if err != nil {
		return err
	}
	count := words.Count(int64(len(found)), "job")
	switch {
	case len(found) == 0 && ended != nil:
		view.Count = "No job matches so far."
	case len(found) == 0:
		view.Count = "No job matches."
	case after != 0:
		view.Count = "More than " + count + "."
	case ended != nil:
		view.Count = count + " so far."
	default:
		view.Count = count + "."
	}
	if ended != nil {
		view.Ended = "Searched " + words.Newest(ended.Looked, ended.Jobs) + "."
	}
	absent, err := p.AbsentJobs(r.Context(), query)
	if err != nil {
		return err
	}
	view.Absent = absentText(absent)
	if next := api.NextJobs(query, after, ended); next != nil {
		view.Next = r.URL.Path + "?" + next.Encode()
	}
	shown := api.Cloned(query)
	shown.Del("limit")
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.Begin(&view.Frame, r, shown, tx, "Jobs")
		if err != nil {
			return err
		}
		if len(found) > 0 {
			view.Jobs = print.Jobs(asked.At != nil)
			for _, j := range found {
				print.AddJob(view.Jobs, j.Then, j.Exit, asked.At != nil, p.Clock(m).At)
			}
		}
		figures, _, err := p.Figures.Read(r.Context(), tx, p.Now())
		view.Names = namesOf(figures)
		if view.Tabs = tabsOf(r.URL.Path, query, &figures); view.At != "" {
			view.Tabs = tabsOf(r.URL.Path, query, nil)
		}
		return err
	})
	narrow := selectOf(query)
	if err == nil && view.At == "" && door.CallerOf(r.Context()).Has(door.Operate) && view.Jobs != nil {
		view.Acts, view.Select = true, narrow
	}
	switch {
	case err != nil || view.Ended != "" || view.Jobs == nil:
	case after != 0 && narrow != nil && view.At == "":
		view.Count, err = p.counted(r, asked, query, limit)
	case after == 0:
		since := view.Seen
		if view.At != "" {
			since = view.Pos
		}
		view.Count = count + exactAt(since, view.Pos)
	}
	view.API = "/api/v1/jobs?" + shown.Encode()
	if view.At == "" {
		view.SQL = sqltext.Jobs(shown, limit, ledger.IsServerAddress(p.Store.Path()))
	}
	view.Command = frame.CommandOf(append(frame.FlagsOf("list", query), "--limit="+strconv.Itoa(limit)))
	if err != nil {
		return err
	}
	return p.Render(w, "jobs", view)
}

// onlyJob is the address of the job of which a search has the whole id, and nothing else; "": the search asks
// for more, or the job is not there.
func (p *Pages) onlyJob(r *http.Request, query url.Values) (to string, err error) {
	id := strings.ToUpper(strings.TrimSpace(query.Get("find")))
	for name, values := range query {
		if name != "find" && name != "at" && strings.Join(values, "") != "" {
			return "", nil
		}
	}
	if len(id) != ulid.EncodedSize || !api.IsJobID(id) {
		return "", nil
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		j, ok, err := projection.Get(r.Context(), tx, event.JobID(id))
		if ok {
			to = (&url.URL{Path: "/jobs/" + string(j.ID), RawQuery: atOf(query).Encode()}).String()
		}
		return err
	})
	return to, err
}

// atOf is the moment of query.
func atOf(query url.Values) url.Values {
	if query.Get("at") == "" {
		return nil
	}
	return url.Values{"at": query["at"]}
}

// selectOf is the filter of query; nil where that is the queue alone, or nothing.
func selectOf(query url.Values) (filter []frame.Param) {
	if !find.Narrow(query) {
		return nil
	}
	for _, name := range api.SortedNames(query) {
		if name == "at" || name == "limit" {
			continue
		}
		for _, value := range query[name] {
			filter = append(filter, frame.Param{Name: name, Value: value})
		}
	}
	return filter
}

// absentText says how many jobs have left the ledger and are not on a page; "" where none has.
func absentText(a projection.Absent) string {
	if a.Jobs == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s left the ledger for its archive and %s not in this list.",
		words.Count(a.Jobs, "job"), words.Plural(a.Jobs, "has", "have"), words.Plural(a.Jobs, "is", "are"))
}
