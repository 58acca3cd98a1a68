package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// maxTable is how many claims the table below the lanes has.
const maxTable = 200

// lanesView is what the page of lanes shows.
type lanesView struct {
	spanView
	Lanes    *query.LaneChart
	Findings []findingView
	Source   string // of the script
	Map      string // of the whole ledger; "": there is none
	Did      *didView
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
	given, span, err := p.readSpan(r, "Lanes", &shown.frame, func(tx *ledger.Tx, s query.Lanes) (err error) {
		s.Columns = 1200
		if shown.Lanes, err = s.Read(r.Context(), tx); err != nil {
			return err
		}
		if shown.Findings, err = findingsOf(r.Context(), tx, s, shown.Lanes, p.Now().Location()); err != nil {
			return err
		}
		shown.Map, err = mapOf(r.Context(), tx, s, shown.clock)
		return err
	})
	if err != nil {
		return err
	}
	shown.set(p, given, span)
	shown.RowGroups, shown.RowGroup = query.Groups, span.Group
	source := shown.withMoment(url.Values{"from": {shown.From}, "to": {shown.To}})
	for _, name := range []string{"queue", "worker", "group"} {
		if given.Has(name) {
			source.Set(name, given.Get(name))
		}
	}
	shown.Source = "/api/v1/lanes?" + source.Encode()
	shown.Incident = "/incident?" + shown.withAt(url.Values{"from": {shown.From}, "to": {shown.To}}).Encode()
	export := url.Values{"from": {shown.From}, "to": {shown.To}, "format": {"csv"}}
	shown.CSV = "/api/v1/export?" + export.Encode()
	export.Set("format", "trace")
	shown.Trace = "/api/v1/export?" + export.Encode()
	export.Set("format", "otlp")
	shown.Spans = "/api/v1/export?" + export.Encode()
	shown.Did = newDid(shown.Lanes.Did, shown.clock)
	shown.Attempts = print.Attempts()
	all := shown.Lanes.All
	unusual := slices.DeleteFunc(slices.Clone(all), func(a attempt) bool {
		return a.Outcome == event.KindSucceeded
	})
	if len(all) > maxTable {
		shown.More, all = true, unusual[:min(len(unusual), maxTable)]
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
	shown.Command, shown.API = commandOf(words), shown.Source
	shown.SQL = fmt.Sprintf("SELECT kind, count(*) FROM history WHERE pos > %d AND pos <= %d GROUP BY kind",
		span.From.Pos, span.To.Pos)
	return p.render(w, "lanes", shown)
}

// findingView is something that went wrong, in a sentence.
type findingView struct {
	Kind, Text string
	Pos        int64
}

// findingsOf is what stands out in lanes, with times in zone.
func findingsOf(ctx context.Context, tx *ledger.Tx, s query.Lanes, lanes *query.LaneChart,
	zone *time.Location) (views []findingView, err error) {
	found, err := query.Findings{Lanes: s, Chart: lanes}.Read(ctx, tx)
	for _, f := range found {
		views = append(views, findingView{f.Kind, print.FindingText(f, zone), f.Pos})
	}
	return views, err
}

// withMoment is a query of a script about the moment of the page, which stays the same for ever.
func (f *frame) withMoment(query url.Values) url.Values {
	if f.At != "" && f.Pos > 0 {
		query.Set("at", fmt.Sprintf("pos:%d", f.Pos))
	}
	return query
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
	query := url.Values{"from": {stamp(from)}, "to": {stamp(to)}, "px": {strconv.Itoa(mapPoints)}}
	if s.Queue != "" {
		query.Set("queue", s.Queue)
	}
	return "/api/v1/depth?" + query.Encode(), nil
}
