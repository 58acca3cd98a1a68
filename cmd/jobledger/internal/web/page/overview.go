package page

import (
	"fmt"
	"net/http"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/queues"
	"jobledger/cmd/jobledger/internal/words"
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
	Failed   *frame.Failures // of the last hour; nil: nothing failed
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
	figures, now, err := p.BeginStatus(&shown.Frame, r, query, "Overview")
	if err != nil {
		return err
	}
	if shown.At != "" {
		shown.Counts = print.CountsNow(figures.Queues)
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
