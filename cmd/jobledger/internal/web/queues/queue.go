package queues

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/limit"
	"jobledger/projection/query"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// queueView is what the page of a queue shows.
type queueView struct {
	frame.Span
	Name     string
	Operates bool
	Status   *words.Table
	Paused   *projection.Queue // nil: it is not
	Since    string
	Known    bool // it was used, is served or fed, or has anything set
	Tiles    []tileView
	Bounds   boundsView
	Defaults defaultsView
	Concerns []frame.Concern
	Charts   []*chart.Chart
	Happened []queueMarkView
	Failed   *frame.Failures // nil: nothing failed
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
	read := func(tx *ledger.Tx, s query.Lanes) error {
		s.Queue = name
		return p.readQueue(r, tx, s, &shown)
	}
	query, span, err := p.ReadSpan(r, "Queue "+name, &shown.Frame, read)
	if err != nil {
		return err
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

// maxFailed is how many groups of failures the page shows.
const maxFailed = 10

// readQueue reads what the page shows.
func (p *Pages) readQueue(r *http.Request, tx *ledger.Tx, s query.Lanes, shown *queueView) error {
	ctx, zone := r.Context(), p.Now().Location()
	m, err := p.MomentOf(r, url.Values{"at": {shown.At}}, tx)
	if err != nil {
		return err
	}
	now := p.Clock(m).At
	var figures view.Figures
	if m.Given {
		figures, err = view.ReadFiguresAsOf(ctx, tx, m.Moment)
	} else if figures, _, err = p.Figures.Read(ctx, tx, now); err == nil {
		if figures.Queues, figures.Workers, err = (status.Both{At: m.Or(now)}).Read(ctx, tx); err == nil {
			figures.Setup, err = status.SetupOf(ctx, tx, m.Or(now), figures.Queues, figures.Workers)
		}
	}
	if err != nil {
		return err
	}
	setup := figures.Setup
	shown.Known = slices.Contains(setup.Names, shown.Name)
	q := status.Queue{Queue: projection.Queue{Name: shown.Name}}
	if i := slices.IndexFunc(figures.Queues, func(q status.Queue) bool { return q.Name == shown.Name }); i >= 0 {
		q = figures.Queues[i]
		shown.Status, _ = print.Status([]status.Queue{q}, now)
	}
	if q.Paused {
		shown.Paused, shown.Since = &q.Queue, words.AgeOrOn(q.Since, now)
	}
	shown.addConcerns(figures.Problems, q, now)
	shown.addTiles(q, figures.Paces[shown.Name], setup.Limits[shown.Name], now)
	if err := shown.addSetup(ctx, tx, m.Or(now), q, setup, zone); err != nil {
		return err
	}
	shown.Workers = print.Workers(setup.Workers[shown.Name], now)
	if err := shown.addHead(ctx, tx, p, m); err != nil {
		return err
	}
	n, err := query.Series{Span: s.Span}.Read(ctx, tx)
	if err != nil {
		return err
	}
	marks, err := query.QueueMarks{Span: s.Span}.Read(ctx, tx)
	if err != nil {
		return err
	}
	shown.draw(n, marks, s, zone)
	failures, err := query.Failures{Span: s.Span, By: query.ByCause, Limit: maxFailed}.Read(ctx, tx)
	if err != nil {
		return err
	}
	shown.Failed = shown.FailedOf("causes", failures, s.Span, maxFailed, zone)
	if named, ok := print.ReportNamed("waits"); ok && n.Wait.Claims > 0 {
		shown.Waits = named.Table([][]any{print.WaitRow(n.Wait)}, zone)
	}
	return nil
}

// addConcerns adds what is not well in q, of all that the rules found, and what is good to know.
func (v *queueView) addConcerns(problems []verdict.Problem, q status.Queue, now time.Time) {
	add := func(c state.Concern) {
		v.Concerns = append(v.Concerns, frame.Concern{Level: frame.LevelNames[c.Level], Text: c.Text, Code: c.Code})
	}
	for _, p := range problems {
		if p.Queue == q.Name && p.Code != verdict.Paused { // that has a line of its own
			add(state.Say(p, now))
		}
	}
	for _, c := range state.Notes(q, now) {
		add(c)
	}
}

// tileView is a figure of a queue.
type tileView struct {
	Name, Value, About string
	Href               string // "": it leads nowhere
	Spark              *chart.Spark
}

// addTiles adds the figures of q, which goes at pace.
func (v *queueView) addTiles(q status.Queue, pace *view.Pace, l limit.Limit, now time.Time) {
	course := courseOf(q, pace, now)
	jobs := func(states ...event.State) string {
		find := url.Values{"queue": {q.Name}}
		for _, s := range states {
			find.Add("state", s.String())
		}
		return "/jobs?" + v.WithAt(find).Encode()
	}
	waiting := tileView{Name: "Ready", Value: course.Ready, About: "none waits", Href: jobs(event.Queued),
		Spark: course.Spark}
	if q.Ready > 0 {
		waiting.About = "the oldest " + course.Oldest
	}
	if q.Scheduled > 0 {
		waiting.About += ", " + course.Later + " later"
	}
	running := tileView{Name: "Held", Value: course.Held, About: "by workers",
		Href: jobs(event.ClaimedState, event.Running)}
	if l.Running > 0 {
		running.About = fmt.Sprintf("of %d at most", l.Running)
	}
	done := tileView{Name: "Done", Value: course.OK, About: "a minute", Href: jobs(event.SucceededState)}
	failing := tileView{Name: "Failing", Value: shareOf(pace), About: course.Failed + " a minute",
		Href: "/failures?" + v.WithAt(url.Values{"queue": {q.Name}}).Encode()}
	wait := tileView{Name: "Wait, p99", Value: course.P99, About: "of the last hour; half of them " + course.P50}
	v.Tiles = []tileView{waiting, running, done, failing, wait}
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
