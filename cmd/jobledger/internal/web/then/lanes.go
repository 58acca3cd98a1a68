package then

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// lanesView is what the page of lanes shows.
type lanesView struct {
	frame.Span
	Lanes    *query.LaneChart
	Findings []frame.Finding
	Source   string // of the script
	Map      string // of the whole ledger; "": there is none
	Did      *frame.Did
	Attempts *words.Table
	More     bool // there are more than the table has
	Incident string
	CSV      string // the window as files
	Trace    string
	Spans    string
}

// lanesPage shows which worker had which jobs, as a picture; without a script, as a table.
func (p *Pages) lanesPage(w http.ResponseWriter, r *http.Request) error {
	shown := lanesView{}
	given, span, err := p.ReadSpan(r, "Lanes", &shown.Frame, func(tx *ledger.Tx, s query.Lanes) (err error) {
		s.Columns = 1200
		if shown.Lanes, err = s.Read(r.Context(), tx); err != nil {
			return err
		}
		if shown.Findings, err = frame.FindingsOf(r.Context(), tx, s, shown.Lanes, p.Now().Location()); err != nil {
			return err
		}
		shown.Map, err = mapOf(r.Context(), tx, s, shown.Clock)
		return err
	})
	if err != nil {
		return err
	}
	shown.SetWindow(p.Site, given, span)
	shown.RowGroups, shown.RowGroup = query.Groups, span.Group
	source := shown.WithMoment(url.Values{"from": {shown.From}, "to": {shown.To}})
	for _, name := range []string{"queue", "worker", "group"} {
		if given.Has(name) {
			source.Set(name, given.Get(name))
		}
	}
	shown.Source = "/api/v1/lanes?" + source.Encode()
	shown.Incident = "/incident?" + shown.WithAt(url.Values{"from": {shown.From}, "to": {shown.To}}).Encode()
	export := url.Values{"from": {shown.From}, "to": {shown.To}, "format": {"csv"}}
	shown.CSV = "/api/v1/export?" + export.Encode()
	export.Set("format", "trace")
	shown.Trace = "/api/v1/export?" + export.Encode()
	export.Set("format", "otlp")
	shown.Spans = "/api/v1/export?" + export.Encode()
	shown.Did = frame.NewDid(shown.Lanes.Did, shown.Clock)
	shown.Attempts = print.Attempts()
	all := shown.Lanes.All
	unusual := slices.DeleteFunc(slices.Clone(all), func(a frame.Attempt) bool {
		return a.Outcome == event.KindSucceeded
	})
	if len(all) > frame.MaxTable {
		shown.More, all = true, unusual[:min(len(unusual), frame.MaxTable)]
	}
	for _, a := range all {
		print.AddAttempt(shown.Attempts, a, span.To.At.In(p.Now().Location()))
	}
	words := []string{"attempts", "--from=" + shown.From, "--to=" + shown.To}
	for _, name := range []string{"queue", "worker"} {
		if given.Has(name) {
			words = append(words, "--"+name+"="+given.Get(name))
		}
	}
	shown.Command, shown.API = frame.CommandOf(words), shown.Source
	shown.SQL = fmt.Sprintf("SELECT kind, count(*) FROM history WHERE pos > %d AND pos <= %d GROUP BY kind",
		span.From.Pos, span.To.Pos)
	return p.Render(w, "lanes", shown)
}

// mapPoints is how many points the map of the whole ledger has.
const mapPoints = 120

// mapOf is where the script finds the depth of the whole ledger, from the first event that is not archived to
// the last one, or the end of s, up to the moment of the page. An import does not count: it may be long after
// what it brought.
func mapOf(ctx context.Context, tx *ledger.Tx, s query.Lanes, until time.Time) (string, error) {
	horizon, err := projection.Horizon(ctx, tx) // what was archived is not asked for
	if err != nil {
		return "", err
	}
	var ends [2]time.Time
	for i := range ends {
		for e, err := range tx.Events(ctx, ledger.Filter{After: horizon, Limit: 1 + i, Last: i == 1}) {
			if err != nil {
				return "", err
			}
			if e.Kind() != event.KindImported || ends[i].IsZero() {
				ends[i] = e.At
			}
		}
	}
	from, to := ends[0], ends[1]
	if s.To.At.After(to) {
		to = s.To.At
	}
	if to.After(until) {
		to = until
	}
	if s.To.Pos == 0 || !from.Before(to) {
		return "", nil
	}
	query := url.Values{"from": {frame.Stamp(from)}, "to": {frame.Stamp(to)}, "px": {strconv.Itoa(mapPoints)}}
	if s.Queue != "" {
		query.Set("queue", s.Queue)
	}
	return "/api/v1/depth?" + query.Encode(), nil
}
