package then

import (
	"fmt"
	"net/http"
	"net/url"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/incident"
	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/draw"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// maxFailed is how many groups of failures the page shows.
const maxFailed = 100

// incidentView is what the page of an incident shows.
type incidentView struct {
	frame.Span
	Report   *incident.Report
	Empty    bool
	Timeline []entryView
	Lost     []string
	Failures *frame.Failures
	Zip      string // its address
	Bodies   bool   // the reader may have payloads
	Lanes    string
	Swim     *draw.Swim
	Charts   []*chart.Chart
	Findings []frame.Finding
}

// entryView is a line of the timeline.
type entryView struct {
	At, UTC, Class string
	Text           []frame.Marked
	Count          int
}

// incidentPage shows what a post-mortem needs to know about a window.
func (p *Pages) incidentPage(w http.ResponseWriter, r *http.Request) error {
	shown := incidentView{Bodies: door.CallerOf(r.Context()).Has(door.Bodies)}
	query, span, err := p.ReadSpan(r, "Incident", &shown.Frame, func(tx *ledger.Tx, s query.Lanes) error {
		s.Columns, s.Bars = draw.SwimColumns, draw.SwimBars
		lanes, err := s.Read(r.Context(), tx)
		if err != nil {
			return err
		}
		shown.Swim = draw.NewSwim(lanes, s, shown.Clock.Location(), shown.AtQuery())
		shown.Findings, err = frame.FindingsOf(r.Context(), tx, s, lanes, p.Now().Location())
		if err != nil || s.To.Pos == 0 {
			return err
		}
		series, err := query.Series{Span: s.Span}.Read(r.Context(), tx)
		if err == nil {
			shown.Charts = []*chart.Chart{frame.DepthChart(series, p.Now().Location()),
				frame.AttemptsChart(series, p.Now().Location())}
		}
		return err
	})
	if err != nil {
		return err
	}
	shown.SetWindow(p.Site, query, span)
	window := export.Window{After: span.From.Pos, Until: span.To.Pos, From: span.From.At, To: span.To.At}
	between := url.Values{"from": {shown.From}, "to": {shown.To}}
	shown.Lanes = "/lanes?" + between.Encode()
	shown.Zip = "/api/v1/incident"
	shown.Command = frame.CommandOf([]string{"incident", "--from=" + shown.From, "--to=" + shown.To,
		"--output=incident"})
	shown.API = "/api/v1/incident?" + between.Encode()
	shown.SQL = sqltext.Window("*", span.From.Pos, span.To.Pos, "ORDER BY pos")
	if shown.Empty = window.Empty(); shown.Empty {
		return p.Render(w, "incident", shown)
	}
	if shown.Report, err = incident.Investigate(r.Context(), p.Store, window, p.Now()); err != nil {
		return err
	}
	zone := p.Now().Location()
	for _, e := range shown.Report.Timeline {
		v := entryView{At: e.First.In(zone).Format("15:04:05"), UTC: frame.Stamp(e.First),
			Text:  frame.MarkedText(e.Text),
			Count: e.Count}
		switch {
		case e.ByOperator:
			v.Class = "operator"
		case e.Failures:
			v.Class = "failures"
		}
		if !e.Last.Equal(e.First) {
			v.At += "–" + e.Last.In(zone).Format("15:04:05")
		}
		shown.Timeline = append(shown.Timeline, v)
	}
	for _, l := range shown.Report.LostWorkers {
		text := fmt.Sprintf("%s, %s, lost %s: ", l.Worker.Name, words.Process(l.Worker),
			words.Count(int64(len(l.Jobs)), "job"))
		if l.LastHeartbeat.IsZero() {
			text += "it sent no heartbeat"
		} else {
			text += "its last heartbeat came at " + l.LastHeartbeat.In(zone).Format("15:04:05")
		}
		text += fmt.Sprintf(", and its loss was noticed at %s.", l.Jobs[0].At.In(zone).Format("15:04:05"))
		if l.Refused > 0 {
			text += fmt.Sprintf(" It came back at %s; %s refused.", l.Back.In(zone).Format("15:04:05"),
				words.Plural(l.Refused, "one write was", fmt.Sprintf("%d writes were", l.Refused)))
		}
		shown.Lost = append(shown.Lost, text)
	}
	shown.Failures = shown.FailedOf("failures", shown.Report.Failures, span.Span, maxFailed, zone)
	return p.Render(w, "incident", shown)
}
