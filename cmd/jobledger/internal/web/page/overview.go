package page

import (
	"fmt"
	"net/http"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/queues"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/status"
)

// overviewView is what the overview shows.
type overviewView struct {
	frame.Frame
	Course   []queues.Course
	Queues   *words.Table
	Counts   *words.Table    // of the past: how many jobs there were then and are now
	Verdict  string          // how many problems and warnings there are
	Needs    []frame.Concern // warnings and problems, the most urgent first
	More     string          // how many of them are left out; "": none
	Notes    []frame.Concern // what is good to know
	Codes    []codeView
	Omitted  int // groups of failures
	Acts     *frame.Did
	LastHour string
	Last     string // the last event
	Crew     string // how many workers are in which state
	Workers  *words.Table
}

// overview shows what the verbs status and workers print, and how fast the queues go.
func (p *Pages) overview(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	var shown overviewView
	var figures view.Figures
	now := p.Now()
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.Begin(&shown.Frame, r, query, tx, "Overview")
		if err != nil {
			return err
		}
		if now = p.Clock(m).At; m.Given {
			figures, err = view.ReadFiguresAsOf(r.Context(), tx, m.Moment)
			return err
		}
		if figures, now, err = p.Figures.Read(r.Context(), tx, now); err == nil {
			now = now.In(p.Now().Location()) // the figures may have been read for another reader
			shown.Pos, shown.AsOf = figures.Pos, words.Time(now)
		}
		return err
	})
	if err != nil {
		return err
	}
	shown.Live = shown.Ago == ""
	shown.API = "/api/v1/status"
	shown.SQL = shown.CountsSQL("")
	shown.Command = "jobledger status"
	if shown.At != "" {
		shown.Counts = print.CountsNow(figures.Queues)
		shown.Command += " --as-of " + frame.Quoted(shown.At)
	}
	shown.Workers = print.Workers(figures.Workers, now)
	var total status.Queue
	shown.Queues, total = print.Status(figures.Queues, now)
	shown.LastHour = state.Activity(total.LastHour)
	for _, one := range figures.Problems {
		shown.addConcern(state.Say(one, now))
	}
	for _, q := range figures.Queues {
		for _, c := range state.Notes(q, now) {
			shown.addConcern(c)
		}
	}
	shown.sum()
	shown.addCrew(figures.Workers)
	shown.addCourse(figures, total, now)
	if last := figures.Last; last != (event.Event{}) {
		shown.Last = fmt.Sprintf("%s, %s", last.Kind(), words.AgeOrOn(last.At, now))
	}
	return p.Render(w, "overview", shown)
}
