package page

import (
	"net/http"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/report"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/status"
)

// queueView is what the page of a queue shows.
type queueView struct {
	spanView
	Name     string
	Operates bool
	Status   *render.Table
	Paused   *projection.Queue // nil: it is not
	Since    string
	Concerns []concernView
	Charts   []*chart.Chart
	Waits    *render.Table
	Workers  *render.Table
	Lanes    string
}

// queuePage shows one queue over a window.
func (p *Pages) queuePage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("queue")
	shown := queueView{Name: name, Operates: door.CallerOf(r.Context()).Has(door.Operate)}
	values := r.URL.Query()
	values.Set("queue", name)
	r.URL.RawQuery = values.Encode()
	var known bool
	query, span, err := p.readSpan(r, "Queue "+name, &shown.frame, func(tx *ledger.Tx, s view.Span) (err error) {
		known, err = p.readQueue(r, tx, s, &shown)
		return err
	})
	if err != nil {
		return err
	}
	if !known {
		return errNoQueue
	}
	query.Del("queue")
	shown.set(p, query, span)
	for i := range shown.Nav {
		shown.Nav[i].Current = shown.Nav[i].Name == "Overview"
	}
	between := url.Values{"from": {shown.From}, "to": {shown.To}, "queue": {name}}
	shown.Lanes = "/lanes?" + between.Encode()
	shown.API = "/api/v1/series?" + between.Encode()
	shown.Command = commandOf([]string{"report", "depth", "--queue=" + name, "--from=" + shown.From,
		"--to=" + shown.To})
	shown.SQL = shown.countsSQL(name)
	return p.render(w, "queue", shown)
}

// readQueue reads what the page shows; known is false where the queue has never had a job nor a pause.
func (p *Pages) readQueue(r *http.Request, tx *ledger.Tx, s view.Span, shown *queueView) (known bool,
	err error) {
	ctx, zone := r.Context(), p.Now().Location()
	m, err := p.momentOf(r, url.Values{"at": {shown.At}}, tx)
	if err != nil {
		return false, err
	}
	now := p.clock(m).At
	var queues []status.Queue
	var workers []status.Worker
	if m.Given {
		var then []status.QueueThen
		if then, workers, err = status.AsOf(ctx, tx, m.Moment); err != nil {
			return false, err
		}
		for _, q := range then {
			queues = append(queues, q.Queue)
		}
	} else {
		if queues, err = status.Queues(ctx, tx, now); err != nil {
			return false, err
		}
		if err := status.AddStranded(ctx, tx, queues, now); err != nil {
			return false, err
		}
		if workers, err = status.Workers(ctx, tx, now, false); err != nil {
			return false, err
		}
	}
	for _, q := range queues {
		if q.Name != shown.Name {
			continue
		}
		known = true
		shown.Status, _ = layout.Status([]status.Queue{q}, now)
		if q.Paused {
			shown.Paused, shown.Since = &q.Queue, render.AgeOrOn(q.Since, now)
		}
		for _, c := range state.Concerns(q, now) {
			shown.Concerns = append(shown.Concerns, concernView{Level: levelNames[c.Level], Text: c.Text})
		}
	}
	if !known {
		return false, nil
	}
	var here []status.Worker
	for _, w := range workers {
		for _, queue := range w.Queues {
			if queue == shown.Name {
				here = append(here, w)
			}
		}
	}
	shown.Workers = layout.Workers(here, now)
	n, err := view.ReadSeries(ctx, tx, s)
	if err != nil {
		return known, err
	}
	step := time.Duration(n.Step * float64(time.Second))
	draw := func(title, unit string, all ...chart.Series) {
		shown.Charts = append(shown.Charts, chart.New(title, n.From, step, zone, unit, all...))
	}
	line := func(name string, values []float64, how chart.How) chart.Series {
		return chart.Series{Name: name, Class: name, Values: values, How: how}
	}
	draw("Depth", "", line("queued", chart.Floats(n.Queued), chart.Area),
		line("held", chart.Floats(n.Held), chart.Plain))
	draw("Attempts every "+render.Duration(step), "", line("succeeded", chart.Floats(n.Succeeded), chart.Area),
		line("failed", chart.Floats(n.Failed), chart.Area), line("lost", chart.Floats(n.Lost), chart.Plain))
	draw("Run time", " s", line("p99", n.RunP99, chart.Plain), line("p50", n.RunP50, chart.Plain))
	waits, err := report.Waits(ctx, tx, report.Window{After: s.From.Pos, Until: s.To.Pos, Now: s.To.At,
		End: s.To.At, Queue: shown.Name})
	if err != nil {
		return known, err
	}
	rows := make([]report.Row, len(waits))
	for i := range waits {
		rows[i] = waits[i]
	}
	if named, ok := report.Named("waits"); ok && len(rows) > 0 {
		shown.Waits = report.Table(named, rows, zone)
	}
	return known, nil
}

var errNoQueue = door.Refusal(http.StatusNotFound, "nothing", "there is no queue of this name")
