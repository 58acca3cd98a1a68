package then

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// eventsView is what the page of events shows.
type eventsView struct {
	frame.Frame
	Events []frame.Event
	Filter url.Values
	frame.KindChoice
	Newest int64  // of a tail: the position of the last event that the page has
	Stream string // of a tail: where the events come from; ""
	Older  string // addresses of other pages; "": there is none
	Newer  string
}

// streamPage sends the events as the page of events shows them.
func (p *Pages) streamPage(w http.ResponseWriter, r *http.Request) error {
	return p.Stream(w, r, func(e view.Sent) ([]byte, error) { return json.Marshal(p.EventOf(e.Event)) })
}

// eventsPage shows what the verb events prints: the last ones, unless after says where to begin.
func (p *Pages) eventsPage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	if query.Has(frame.KindsParam) {
		return p.SayKinds(w, r, query, false)
	}
	return p.showEvents(w, r, eventsView{Filter: query}, query)
}

// tailPage shows the last events, to which a script adds what is recorded. Heartbeats are left out, unless
// the parameter kind is there; it may be empty.
func (p *Pages) tailPage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	if query.Has(frame.KindsParam) {
		return p.SayKinds(w, r, query, true)
	}
	if !r.URL.Query().Has("kind") {
		query.Set("kind", "-"+event.KindHeartbeat.String())
	}
	shown := eventsView{Filter: query, Stream: "/tail/stream?" + query.Encode()}
	return p.showEvents(w, r, shown, query)
}

func (p *Pages) showEvents(w http.ResponseWriter, r *http.Request, shown eventsView, query url.Values) error {
	err := p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		_, err := p.Begin(&shown.Frame, r, query, tx, "Events")
		return err
	})
	if err != nil {
		return err
	}
	asked := api.Cloned(query)
	if asked.Del("at"); shown.At != "" && !asked.Has("to") {
		asked.Set("to", shown.At)
	}
	if !asked.Has("after") && !asked.Has("from") && !asked.Has("last") && !asked.Has("limit") {
		asked.Set("last", strconv.Itoa(api.DefaultLimit))
	}
	limit, err := api.ResourceAt("/events").Check(asked)
	if err != nil {
		return err
	}
	_, found, err := p.EventsOf(r.Context(), asked, limit)
	if err != nil {
		return err
	}
	for e, err := range found {
		if err != nil {
			return err
		}
		shown.Events = append(shown.Events, p.EventOf(e))
	}
	shown.Newest = shown.Pos
	if n := len(shown.Events); n > 0 {
		shown.Newest = max(shown.Newest, shown.Events[n-1].Pos)
	}
	if shown.Stream == "" {
		shown.addPages(query, asked)
	} else {
		shown.Title, shown.Timeless = "Tail", true
	}
	if shown.KindChoice, err = frame.KindsOf(query["kind"]); err != nil {
		return err
	}
	words := frame.FlagsOf("events", asked)
	if limit > 0 {
		words = append(words, "--limit="+strconv.Itoa(limit))
	}
	shown.Command = frame.CommandOf(words)
	if shown.SQL = sqltext.Events(query, shown.Pos, api.DefaultLimit); shown.At == "" {
		shown.API = "/api/v1/events?" + asked.Encode()
	}
	return p.Render(w, "events", shown)
}

// addPages adds the addresses of the events before and after those shown.
func (v *eventsView) addPages(query, asked url.Values) {
	if len(v.Events) == 0 {
		return
	}
	first, last := v.Events[0].Pos, v.Events[len(v.Events)-1].Pos
	address := func(change func(url.Values)) string {
		q := api.Cloned(query)
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
