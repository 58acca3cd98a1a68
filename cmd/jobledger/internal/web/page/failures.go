package page

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// maxFailures is how many groups of failures the page shows.
const maxFailures = 100

// failuresView is what the page of failures shows.
type failuresView struct {
	frame.Span
	Groups   []failureView
	Attempts int64
	Omitted  int
}

// failureView is one group of failures.
type failureView struct {
	*query.FailureGroup
	First, Last string
	Detail      string
	Attempts    int
	Jobs        int
	Workers     string
	Versions    string
	Became      string // what became of those jobs
	Spark       []sparkView
	Find        string // the jobs of it
}

// sparkView is a column of a small picture.
type sparkView struct{ X, Y, Height int }

// failuresPage shows what failed within a window, by sort.
func (p *Pages) failuresPage(w http.ResponseWriter, r *http.Request) error {
	shown := failuresView{}
	query, span, err := p.ReadSpan(r, "Failures", &shown.Frame, func(tx *ledger.Tx, s query.Lanes) error {
		found, err := query.Failures{Span: s.Span, By: query.ByCause, Limit: maxFailures}.Read(r.Context(), tx)
		if err != nil {
			return err
		}
		versions := make(map[string]int)
		for _, g := range found.List {
			maps.Copy(versions, g.Versions)
		}
		shown.Attempts, shown.Omitted = found.Attempts, found.More
		for _, g := range found.List {
			jobs, err := projection.GetMany(r.Context(), tx, slices.Sorted(maps.Keys(g.Jobs)))
			if err != nil {
				return err
			}
			v := p.failureView(g, jobs, versions, shown.At != "")
			v.Spark = sparkOf(g, s)
			shown.Groups = append(shown.Groups, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	shown.SetWindow(p.Site, query, span)
	shown.Live = shown.Ago == "" && !query.Has("to")
	shown.Command = frame.CommandOf([]string{"report", "failures", "--from=" + shown.From, "--to=" + shown.To})
	between := url.Values{"from": {shown.From}, "to": {shown.To}}
	for _, name := range []string{"queue", "worker"} {
		if query.Has(name) {
			between.Set(name, query.Get(name))
		}
	}
	shown.API = "/api/v1/failures?" + between.Encode()
	shown.SQL = fmt.Sprintf("SELECT kind, count(*), count(DISTINCT job) FROM history WHERE kind IN ('failed', "+
		"'reclaimed') AND pos > %d AND pos <= %d GROUP BY kind", span.From.Pos, span.To.Pos)
	return p.Render(w, "failures", shown)
}

func (p *Pages) failureView(g *query.FailureGroup, jobs map[int64]projection.Job, versions map[string]int,
	past bool) failureView {
	zone := p.Now().Location()
	v := failureView{FailureGroup: g, Detail: words.Escape(g.Example),
		First: g.First.In(zone).Format("01-02 15:04:05"),
		Last:  g.Last.In(zone).Format("01-02 15:04:05"), Attempts: int(g.Attempts), Jobs: len(g.Jobs),
		Workers: mostOf(g.Workers, 3)}
	if len(versions) > 1 && len(g.Versions) == 1 {
		for name := range g.Versions {
			v.Versions = "only " + words.OrNone(name)
		}
	} else {
		v.Versions = mostOf(g.Versions, 3)
	}
	became, still := make(map[event.State]int), false
	for _, j := range jobs {
		became[j.State]++
		still = still || j.ErrorCode == g.Code
	}
	var parts []string
	for _, state := range event.States() {
		if became[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", became[state], state))
		}
	}
	v.Became = strings.Join(parts, ", ")
	q := url.Values{"error": {g.Code}}
	if g.Queue != "" {
		q.Set("queue", g.Queue)
	}
	if past || !still { // as of the last of these failures, the list has its job
		q.Set("at", fmt.Sprintf("pos:%d", g.LastPos))
	}
	v.Find = "/jobs?" + q.Encode()
	return v
}

// sparkSteps is how many columns the small picture of a group has.
const sparkSteps = 48

// sparkOf is when the failures of g came within s.
func sparkOf(g *query.FailureGroup, s query.Lanes) (columns []sparkView) {
	var steps [sparkSteps]int
	for _, f := range g.Each {
		steps[max(0, min(sparkSteps-1, int(sparkSteps*f.At.Sub(s.From.At)/s.Length())))]++
	}
	most := slices.Max(steps[:])
	for i, n := range steps {
		if n > 0 {
			h := max(2, 20*n/most)
			columns = append(columns, sparkView{X: i * 3, Y: 22 - h, Height: h})
		}
	}
	return columns
}

// mostOf names the n most frequent, with their counts.
func mostOf(counts map[string]int, n int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names[:min(len(names), n)] {
		parts = append(parts, fmt.Sprintf("%s %d", words.OrNone(name), counts[name]))
	}
	if len(names) > n {
		parts = append(parts, fmt.Sprintf("%d more", len(names)-n))
	}
	return strings.Join(parts, ", ")
}
