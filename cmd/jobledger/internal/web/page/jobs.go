package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"jobledger/cmd/jobledger/internal/jobfilter"
	"jobledger/cmd/jobledger/internal/paging"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/ledger"
	"jobledger/projection"
)

// pageJobs is how many jobs a page shows, unless limit says another number.
const pageJobs = 50

// jobsView is what the page of jobs shows.
type jobsView struct {
	frame
	Jobs   *render.Table // nil: none matches
	Count  string
	Next   string // address of the next page; ""
	Ended  string // how far the search came in its time, and Next goes on; "": to its end
	Absent string // which jobs have left the ledger and are not in the list; ""
	Filter url.Values
	States []choice
	Select []param // the filter, where an act on all that match is possible
	Acts   bool    // acts on the jobs of the page are possible
	Seen   int64   // a position of which the list has everything

	FindKeys []string // of the terms of a search
	Names    names
}

// choice is one value of a field of a form.
type choice struct {
	Value  string
	Chosen bool
}

// jobsPage shows what the verb list prints.
func (p *Pages) jobsPage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	if !query.Has("limit") {
		query.Set("limit", strconv.Itoa(pageJobs))
	}
	res := api.ResourceAt("/jobs")
	words, limit, err := res.Words(query, "")
	if err != nil {
		return err
	}
	view := jobsView{Filter: query, FindKeys: jobfilter.FindKeys}
	for _, name := range jobfilter.StateNames() {
		view.States = append(view.States, choice{name, slices.Contains(query["state"], name)})
	}
	if view.Seen, err = p.Tail(r.Context()); err != nil { // what happens from here on has moved on
		return err
	}
	first := "" // of the next page
	words = slices.DeleteFunc(words, func(word string) bool { return word == "--json" })
	tables, err := p.Tables(r.Context(), append(slices.Clone(words), p.SearchWords(query)...))
	ended, isEnded := errors.AsType[*paging.Ended](err)
	switch {
	case err != nil && !isEnded && !p.Nothing(err):
		return err
	case len(tables) == 0 && isEnded:
		view.Count = "No job matches so far."
	case len(tables) == 0:
		view.Count = "No job matches."
	default:
		view.Jobs = tables[0]
		n := len(view.Jobs.Rows())
		if n > limit {
			first, isEnded, ended = view.Jobs.Cut(limit)[0], false, nil
			view.Count = "More than " + render.Count(int64(limit), "job") + "."
		} else if isEnded {
			view.Count = render.Count(int64(n), "job") + " so far."
		} else {
			view.Count = render.Count(int64(n), "job") + "."
		}
	}
	if isEnded {
		view.Ended = "Searched " + render.Newest(ended.Looked, ended.Jobs) + "."
	}
	absent, err := p.AbsentJobs(r.Context(), query)
	if err != nil {
		return err
	}
	view.Absent = absentText(absent)
	next, err := p.NextJobs(r.Context(), query, first, ended)
	if err != nil {
		return err
	}
	if next != nil {
		view.Next = r.URL.Path + "?" + next.Encode()
	}
	shown := api.Cloned(query)
	shown.Del("limit")
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.momentOf(r, query, tx)
		if err != nil {
			return err
		}
		if view.frame, err = p.frameAt(r, shown, tx, m, "Jobs"); err != nil {
			return err
		}
		figures, _, err := p.Figures.Read(r.Context(), tx, p.Now())
		view.Names = namesOf(figures)
		return err
	})
	narrow := selectOf(query)
	if err == nil && view.At == "" && door.CallerOf(r.Context()).Has(door.Operate) && view.Jobs != nil {
		view.Acts, view.Select = true, narrow
	}
	switch {
	case err != nil || view.Ended != "" || view.Jobs == nil:
	case first != "" && narrow != nil && view.At == "":
		view.Count, err = p.counted(r, query, limit)
	case first == "":
		since := view.Seen
		if view.At != "" {
			since = view.Pos
		}
		view.Count = render.Count(int64(len(view.Jobs.Rows())), "job") + exactAt(since, view.Pos)
	}
	view.API = "/api/v1/jobs?" + shown.Encode()
	if view.At == "" {
		view.SQL = sqltext.Jobs(shown, limit, ledger.IsServerAddress(p.Store.Path()))
	}
	words[len(words)-1] = "--limit=" + strconv.Itoa(limit)
	view.Command = commandOf(words)
	if err != nil {
		return err
	}
	return p.render(w, "jobs", view)
}

// selectOf is the filter of query; nil where that is the queue alone, or nothing.
func selectOf(query url.Values) (filter []param) {
	narrow := false
	for _, name := range api.SortedNames(query) {
		if name == "at" || name == "limit" {
			continue
		}
		narrow = narrow || name != "queue" && name != "by" && (name != "find" ||
			jobfilter.Narrows(query.Get(name)))
		for _, value := range query[name] {
			filter = append(filter, param{name, value})
		}
	}
	if !narrow {
		return nil
	}
	return filter
}

// absentText says how many jobs have left the ledger and are not on a page; "" where none has.
func absentText(a projection.Absent) string {
	if a.Jobs == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s left the ledger for its archive and %s not in this list.",
		render.Count(a.Jobs, "job"), render.Plural(a.Jobs, "has", "have"), render.Plural(a.Jobs, "is", "are"))
}
