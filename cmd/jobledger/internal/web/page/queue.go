package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// queueView is what the page of a queue shows.
type queueView struct {
	frame.Span
	Name     string
	Operates bool
	Status   *words.Table
	Paused   *projection.Queue // nil: it is not
	Since    string
	Concerns []concernView
	Charts   []*chart.Chart
	Happened []queueMarkView
	Codes    *words.Table
	Waits    *words.Table
	Workers  *words.Table
	Lanes    string
	Head     event.JobID // the job that is ready for longest; "": none is
	Why      []string
}

// queueMarkView is something that happened to the queue.
type queueMarkView struct{ Kind, At, UTC, Text string }

// queuePage shows one queue over a window.
func (p *Pages) queuePage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("queue")
	shown := queueView{Name: name, Operates: door.CallerOf(r.Context()).Has(door.Operate)}
	if err := commands.CheckQueue(name); err != nil {
		return err
	}
	var known bool
	read := func(tx *ledger.Tx, s query.Lanes) (err error) {
		s.Queue = name
		known, err = p.readQueue(r, tx, s, &shown)
		return err
	}
	query, span, err := p.ReadSpan(r, "Queue "+name, &shown.Frame, read)
	if err != nil {
		return err
	}
	if !known {
		return errNoQueue
	}
	shown.SetWindow(p.Site, query, span)
	shown.Live = shown.Ago == "" && !query.Has("to")
	between := url.Values{"from": {shown.From}, "to": {shown.To}, "queue": {name}}
	shown.Lanes = "/lanes?" + between.Encode()
	shown.API = "/api/v1/series?" + between.Encode()
	shown.Command = frame.CommandOf([]string{"report", "depth", "--queue=" + name, "--from=" + shown.From,
		"--to=" + shown.To})
	shown.SQL = shown.CountsSQL(name)
	return p.Render(w, "queue", shown)
}

// readQueue reads what the page shows; known is false where the queue has never had a job nor a pause.
func (p *Pages) readQueue(r *http.Request, tx *ledger.Tx, s query.Lanes, shown *queueView) (known bool,
	err error) {
	ctx, zone := r.Context(), p.Now().Location()
	m, err := p.MomentOf(r, url.Values{"at": {shown.At}}, tx)
	if err != nil {
		return false, err
	}
	now := p.Clock(m).At
	queues, workers, err := status.Both{At: m.Or(now)}.Read(ctx, tx)
	if err != nil {
		return false, err
	}
	for _, q := range queues {
		if q.Name != shown.Name {
			continue
		}
		known = true
		shown.Status, _ = print.Status([]status.Queue{q}, now)
		if q.Paused {
			shown.Paused, shown.Since = &q.Queue, words.AgeOrOn(q.Since, now)
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
	shown.Workers = print.Workers(here, now)
	if err := shown.addHead(ctx, tx, p, m); err != nil {
		return known, err
	}
	n, err := query.Series{Span: s.Span}.Read(ctx, tx)
	if err != nil {
		return known, err
	}
	marks, err := query.QueueMarks{Span: s.Span}.Read(ctx, tx)
	if err != nil {
		return known, err
	}
	shown.draw(n, marks, s, zone)
	codes, err := query.Failures{Span: s.Span}.Read(ctx, tx)
	if err != nil {
		return known, err
	}
	shown.Codes = frame.CodesTable(codes.List, false, zone)
	if named, ok := print.ReportNamed("waits"); ok && n.Wait.Claims > 0 {
		shown.Waits = named.Table([][]any{print.WaitRow(n.Wait)}, zone)
	}
	return known, nil
}

// draw adds the charts of n, with marks.
func (v *queueView) draw(n *query.Course, marks []query.QueueMark, s query.Lanes, zone *time.Location) {
	step := frame.StepOf(n)
	draw := func(title, unit string, all ...chart.Series) {
		v.Charts = append(v.Charts, chart.New(title, n.From, step, zone, unit, all...))
	}
	of := chart.Of
	v.Charts = append(v.Charts, frame.DepthChart(n, zone), frame.AttemptsChart(n, zone))
	draw("Wait from ready to claimed", " s", of("p99", chart.Known(n.WaitP99, n.Claimed), chart.Band),
		of("p90", chart.Known(n.WaitP90, n.Claimed), chart.Band),
		of("p50", chart.Known(n.WaitP50, n.Claimed), chart.Plain))
	draw("Run time", " s", of("p99", chart.Known(n.RunP99, n.Ended), chart.Band),
		of("p50", chart.Known(n.RunP50, n.Ended), chart.Plain))
	whole := float64(step) * float64(len(n.Ready)-1)
	for i, m := range marks {
		text := markText(m)
		for _, c := range v.Charts {
			c.MarkAt(float64(m.At.Sub(s.From.At))/max(whole, 1), m.Kind, text)
		}
		if i < maxMarks {
			v.Happened = append(v.Happened, queueMarkView{m.Kind, m.At.In(zone).Format("15:04:05"),
				frame.Stamp(m.At), text})
		}
	}
}

// maxMarks is how many of the marks of the charts the page has in words.
const maxMarks = 30

// markText is m in a sentence.
func markText(m query.QueueMark) string {
	switch m.Kind {
	case "deploy":
		return fmt.Sprintf("%s: version %s after %s", m.Worker, words.OrNone(m.After), words.OrNone(m.Before))
	case "paused":
		return "paused by " + m.By + ": " + words.ReasonOrNone(m.Reason)
	case "resumed":
		return "resumed by " + m.By
	}
	return m.Worker + ": its last sign of life"
}

// addHead adds why the job that is to be claimed next has not been.
func (v *queueView) addHead(ctx context.Context, tx *ledger.Tx, p *Pages, m frame.Moment) (err error) {
	asked := projection.Now(p.Now())
	if m.Given {
		asked = m.Moment
	}
	n, err := query.Head{Queue: v.Name, At: asked}.Read(ctx, tx)
	if err != nil || n == 0 {
		return err
	}
	jobs, err := projection.GetMany(ctx, tx, []int64{n})
	if err != nil {
		return err
	}
	job := jobs[n]
	job.N = n
	why, err := state.Explain(ctx, tx, job, m.Past, p.Now())
	v.Head, v.Why = jobs[n].ID, why.Sentences
	return err
}

var errNoQueue = door.Refusal(http.StatusNotFound, "nothing", "there is no queue of this name")
