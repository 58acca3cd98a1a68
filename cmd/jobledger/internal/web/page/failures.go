package page

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/history"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// maxFailures is how many groups of failures the page shows.
const maxFailures = 100

// failuresView is what the page of failures shows.
type failuresView struct {
	spanView
	Groups   []failureView
	Attempts int
	Omitted  int
}

// failureView is one group of failures.
type failureView struct {
	*history.FailureGroup
	First, Last string
	Detail      string
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
	query, span, err := p.readSpan(r, "Failures", &shown.frame, func(tx *ledger.Tx, s history.Span) error {
		groups, err := history.Failures(r.Context(), tx, s)
		if err != nil {
			return err
		}
		versions := make(map[string]bool)
		for _, g := range groups {
			shown.Attempts += g.Count
			maps.Copy(versions, asSet(g.Versions))
		}
		shown.Omitted = max(0, len(groups)-maxFailures)
		for _, g := range groups[:min(len(groups), maxFailures)] {
			jobs, err := projection.GetMany(r.Context(), tx, slices.Sorted(maps.Keys(g.Jobs)))
			if err != nil {
				return err
			}
			shown.Groups = append(shown.Groups, p.failureView(g, jobs, versions, shown.At != ""))
		}
		return nil
	})
	if err != nil {
		return err
	}
	shown.set(p, query, span)
	shown.Command = commandOf([]string{"report", "failures", "--from=" + shown.From, "--to=" + shown.To})
	between := url.Values{"from": {shown.From}, "to": {shown.To}}
	for _, name := range []string{"queue", "worker"} {
		if query.Has(name) {
			between.Set(name, query.Get(name))
		}
	}
	shown.API = "/api/v1/failures?" + between.Encode()
	shown.SQL = fmt.Sprintf("SELECT kind, count(*), count(DISTINCT job) FROM history WHERE kind IN ('failed', "+
		"'reclaimed') AND pos > %d AND pos <= %d GROUP BY kind", span.From.Pos, span.To.Pos)
	return p.render(w, "failures", shown)
}

func asSet(counts map[string]int) map[string]bool {
	set := make(map[string]bool)
	for name := range counts {
		set[name] = true
	}
	return set
}

func (p *Pages) failureView(g *history.FailureGroup, jobs map[int64]projection.Job, versions map[string]bool,
	past bool) failureView {
	zone := p.Now().Location()
	v := failureView{FailureGroup: g, Detail: render.Escape(g.Example),
		First: g.First.In(zone).Format("01-02 15:04:05"),
		Last:  g.Last.In(zone).Format("01-02 15:04:05"), Jobs: len(g.Jobs), Workers: mostOf(g.Workers, 3)}
	if len(versions) > 1 && len(g.Versions) == 1 {
		for name := range g.Versions {
			v.Versions = "only " + render.OrNone(name)
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
	most := slices.Max(g.Steps[:])
	for i, n := range g.Steps {
		if n > 0 {
			h := max(2, 20*n/most)
			v.Spark = append(v.Spark, sparkView{X: i * 3, Y: 22 - h, Height: h})
		}
	}
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
		parts = append(parts, fmt.Sprintf("%s %d", render.OrNone(name), counts[name]))
	}
	if len(names) > n {
		parts = append(parts, fmt.Sprintf("%d more", len(names)-n))
	}
	return strings.Join(parts, ", ")
}
