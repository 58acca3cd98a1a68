package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// eventsView is what the page of events shows.
type eventsView struct {
	frame
	Events []eventView
	Filter url.Values
	Kinds  []choice
	After  int64  // of a tail: of the last event that the page has
	Stream string // of a tail: where the events come from; ""
	Older  string // addresses of other pages; "": there is none
	Newer  string
}

// eventView is an event for people.
type eventView struct {
	Pos   int64
	Job   event.JobID
	At    string
	After string // how long after the event before; of a history
	Kind  string
	State string
	By    string
	What  string
	More  string // what is left out after it
	Error string // the detail of a failure
}

// viewOf is e as pages show it.
func (s *Server) viewOf(e event.Event) eventView {
	zone := s.Now().Location()
	kind, _ := render.KindLabel(e)
	v := eventView{Pos: e.Pos, Job: e.Job, At: render.Millis(e.At.In(zone)), Kind: kind, By: e.Actor,
		What: render.Describe(e, zone)}
	if e.To != 0 {
		v.State = e.To.String()
	}
	if b, ok := e.Body.(*event.Failed); ok {
		v.Error = b.ErrorDetail
	}
	return v
}

// eventsPage shows what the verb events prints: the last ones, unless after says where to begin.
func (s *Server) eventsPage(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	return s.showEvents(w, r, eventsView{Filter: query}, query)
}

// tailPage shows the last events, to which a script adds what is recorded.
func (s *Server) tailPage(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	for name := range query {
		if !slices.Contains(streamParams, name) || name == "after" {
			return refusal(http.StatusBadRequest, "usage",
				"the parameters of this page are kind, queue, job, worker and actor")
		}
	}
	view := eventsView{Filter: query, Stream: "/tail/stream?" + query.Encode()}
	return s.showEvents(w, r, view, query)
}

func (s *Server) showEvents(w http.ResponseWriter, r *http.Request, view eventsView, query url.Values) error {
	err := s.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := s.momentOf(r, query, tx)
		if err == nil {
			view.frame, err = s.frameAt(r, query, tx, m, "Events")
		}
		return err
	})
	if err != nil {
		return err
	}
	asked := url.Values(http.Header(query).Clone())
	if asked.Del("at"); view.At != "" && !asked.Has("to") {
		asked.Set("to", view.At)
	}
	if !asked.Has("after") && !asked.Has("from") && !asked.Has("last") && !asked.Has("limit") {
		asked.Set("last", strconv.Itoa(defaultLimit))
	}
	res := resourceAt("/events")
	f, err := s.find(r, res, asked)
	if err != nil {
		return err
	}
	for _, line := range f.lines {
		var e event.Event
		if err := e.UnmarshalJSON(line); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		view.Events = append(view.Events, s.viewOf(e))
	}
	view.After = view.Pos
	if n := len(view.Events); n > 0 {
		view.After = max(view.After, view.Events[n-1].Pos)
	}
	if view.Stream == "" {
		view.addPages(query, asked)
	} else {
		view.Title = "Tail"
	}
	for _, k := range event.Kinds() {
		view.Kinds = append(view.Kinds, choice{k.String(), query.Get("kind") == k.String()})
	}
	words, _, err := res.words(asked, "")
	view.Command = commandOf(words)
	if err != nil {
		return err
	}
	return s.render(w, "events", view)
}

// addPages adds the addresses of the events before and after those shown.
func (v *eventsView) addPages(query, asked url.Values) {
	if len(v.Events) == 0 {
		return
	}
	first, last := v.Events[0].Pos, v.Events[len(v.Events)-1].Pos
	address := func(change func(url.Values)) string {
		q := url.Values(http.Header(query).Clone())
		for _, name := range []string{"to", "after", "from", "last", "limit"} {
			q.Del(name)
		}
		change(q)
		return v.Path + "?" + q.Encode()
	}
	if first > 1 {
		v.Older = address(func(q url.Values) { q.Set("to", fmt.Sprintf("pos:%d", first-1)) })
	}
	if last < v.Pos || asked.Has("to") && last < v.Tail && v.At == "" {
		v.Newer = address(func(q url.Values) { q.Set("after", strconv.FormatInt(last, 10)) })
	}
}
