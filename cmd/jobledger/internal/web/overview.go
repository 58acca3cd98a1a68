package web

import (
	"context"
	"fmt"
	"net/http"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// overviewView is what the overview shows.
type overviewView struct {
	frame
	Queues   *render.Table
	Counts   *render.Table // of the past: how many jobs there were then and are now
	Concerns []concernView
	LastHour string
	Last     string // the last event
	Workers  *render.Table
}

// concernView is a sentence about a queue.
type concernView struct {
	Level string
	Text  string
}

var levelNames = map[state.Level]string{state.Info: "info", state.Warning: "warning",
	state.Problem: "problem"}

// overview shows what the verbs status and workers print.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	var view overviewView
	var figures figures
	var then []status.QueueThen
	now := s.Now()
	err = s.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := s.momentOf(r, query, tx)
		if err != nil {
			return err
		}
		if view.frame, err = s.frameAt(r, query, tx, m, "Overview"); err != nil {
			return err
		}
		if now = s.clock(m).At; m.Given {
			figures, then, err = readFiguresAsOf(r.Context(), tx, m.Moment)
			return err
		}
		if figures, err = readFigures(r.Context(), tx, now); err != nil {
			return err
		}
		return status.AddStranded(r.Context(), tx, figures.queues, now)
	})
	if err != nil {
		return err
	}
	view.Command = "jobledger status"
	if view.At != "" {
		view.Counts = layout.CountsNow(then)
		view.Command += " --as-of " + quoted(view.At)
	}
	view.Workers = layout.Workers(figures.workers, now)
	var total status.Queue
	view.Queues, total = layout.Status(figures.queues, now)
	view.LastHour = state.Activity(total.LastHour)
	for _, q := range figures.queues {
		for _, c := range state.Concerns(q, now) {
			view.Concerns = append(view.Concerns, concernView{levelNames[c.Level], q.Name + ": " + c.Text})
		}
	}
	if last := figures.last; last != (event.Event{}) {
		view.Last = fmt.Sprintf("%s, %s", last.Kind(), render.AgeOrOn(last.At, now))
	}
	return s.render(w, "overview", view)
}

// readFiguresAsOf reads what the overview shows of m.
func readFiguresAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) (f figures,
	then []status.QueueThen, err error) {
	f.pos = m.Pos
	if then, err = status.QueuesAsOf(ctx, tx, m); err != nil {
		return f, then, err
	}
	if err = status.AddStrandedAsOf(ctx, tx, then, m); err != nil {
		return f, then, err
	}
	for _, q := range then {
		f.queues = append(f.queues, q.Queue)
	}
	if f.workers, err = status.WorkersAsOf(ctx, tx, m, false); err != nil || m.Pos == 0 {
		return f, then, err
	}
	f.last, err = state.LastEvent(ctx, tx, m.Pos)
	return f, then, err
}
