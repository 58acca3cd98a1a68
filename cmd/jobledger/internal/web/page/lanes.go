package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

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
	spanView
	Lanes    *view.Lanes
	Findings []view.Finding
	Source   string // of the script
	Attempts *render.Table
	More     bool // there are more than the table has
	Incident string
}

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
	shown.set(p, query, span)
	source := url.Values{"from": {shown.From}, "to": {shown.To}}
	for _, name := range []string{"queue", "worker"} {
		if query.Has(name) {
			source.Set(name, query.Get(name))
		}
	}
	shown.Source = "/api/v1/lanes?" + source.Encode()
	shown.Incident = "/incident?" + url.Values{"from": {shown.From}, "to": {shown.To}}.Encode()
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
	shown.Command, shown.API = commandOf(words), shown.Source
	shown.SQL = fmt.Sprintf("SELECT kind, count(*) FROM history WHERE pos > %d AND pos <= %d GROUP BY kind",
		span.From.Pos, span.To.Pos)
	return p.render(w, "lanes", shown)
}
