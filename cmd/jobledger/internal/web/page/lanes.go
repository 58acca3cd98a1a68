package page

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// maxTable is how many claims the table below the lanes has.
const maxTable = 200

// lanesView is what the page of lanes shows.
type lanesView struct {
	frame
	Lanes    *view.Lanes
	Findings []view.Finding
	Filter   url.Values
	From, To string // as the form and the script have them
	Window   string // for people
	Source   string // of the script
	Attempts *render.Table
	More     bool // there are more than the table has
	Incident string
	Zoom     []link // other windows
}

// link is a link with its text.
type link struct{ Text, Href string }

// lanesPage shows which worker had which jobs, as a picture; without a script, as a table.
func (p *Pages) lanesPage(w http.ResponseWriter, r *http.Request) error {
	shown := lanesView{}
	query, span, err := p.readSpan(r, "Lanes", &shown.frame, func(tx *ledger.Tx, s view.Span) (err error) {
		s.Columns = 1200
		if shown.Lanes, err = view.ReadLanes(r.Context(), tx, s); err != nil {
			return err
		}
		shown.Findings, err = shown.Lanes.Findings(r.Context(), tx, s, p.Now().Location())
		return err
	})
	if err != nil {
		return err
	}
	shown.Filter = query
	shown.setWindow(p, span)
	source := url.Values{"from": {shown.From}, "to": {shown.To}}
	for _, name := range []string{"queue", "worker"} {
		if query.Has(name) {
			source.Set(name, query.Get(name))
		}
	}
	shown.Source = "/api/v1/lanes?" + source.Encode()
	shown.Incident = "/incident?" + url.Values{"from": {shown.From}, "to": {shown.To}}.Encode()
	for _, z := range []struct {
		text   string
		factor float64
	}{{"Zoom in", .5}, {"Zoom out", 2}} {
		middle, half := span.From.At.Add(span.To.At.Sub(span.From.At)/2),
			time.Duration(float64(span.To.At.Sub(span.From.At))*z.factor/2)
		shown.addZoom(p, query, z.text, middle.Add(-half), middle.Add(half))
	}
	length := span.To.At.Sub(span.From.At)
	shown.addZoom(p, query, "Earlier", span.From.At.Add(-length/2), span.To.At.Add(-length/2))
	shown.addZoom(p, query, "Later", span.From.At.Add(length/2), span.To.At.Add(length/2))
	shown.Attempts = layout.Attempts()
	all := shown.Lanes.All
	unusual := slices.DeleteFunc(slices.Clone(all), func(a attempt) bool {
		return a.Outcome == event.KindSucceeded
	})
	if len(all) > maxTable {
		shown.More, all = true, unusual[:min(len(unusual), maxTable)]
	}
	for _, a := range all {
		layout.AddAttempt(shown.Attempts, a, span.To.At.In(p.Now().Location()))
	}
	words := []string{"attempts", "--from=" + shown.From, "--to=" + shown.To}
	for _, name := range []string{"queue", "worker"} {
		if query.Has(name) {
			words = append(words, "--"+name+"="+query.Get(name))
		}
	}
	shown.Command = commandOf(words)
	return p.render(w, "lanes", shown)
}

// setWindow sets the times of the window.
func (v *lanesView) setWindow(p *Pages, s view.Span) {
	v.From, v.To = stamp(s.From.At), stamp(s.To.At)
	v.Window = windowText(s, p.Now().Location())
}

// stamp is t in an address.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// windowText is s for people, in zone.
func windowText(s view.Span, zone *time.Location) string {
	from, to := s.From.At.In(zone), s.To.At.In(zone)
	end := to.Format("15:04:05 MST")
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		end = to.Format("2006-01-02 15:04:05 MST")
	}
	return from.Format("2006-01-02 15:04:05") + " to " + end + ", " + render.Briefly(to.Sub(from))
}

func (v *lanesView) addZoom(p *Pages, query url.Values, text string, from, to time.Time) {
	if now := p.Now(); to.After(now) {
		to = now
	}
	if !from.Before(to) || to.Sub(from) < time.Second {
		return
	}
	q := url.Values(http.Header(query).Clone())
	q.Set("from", stamp(from))
	q.Set("to", stamp(to))
	v.Zoom = append(v.Zoom, link{text, "/lanes?" + q.Encode()})
}
