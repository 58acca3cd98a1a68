package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
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
	GivenUp  bool   // only the causes by which jobs failed for good are shown
	Toggled  string // the address of the page with the others, or without them
	Attempts int64
	Omitted  int
	Retries  bool // some rows have jobs to retry
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
	Cause       string // how it ended
	Share       string // of the attempts of the queue
	Spark       []sparkView
	Find        string // the jobs of it; "": they have no address
	Retry       string // those that failed last by it; "": there is none, or it cannot be done
}

// sparkView is a column of a small picture.
type sparkView struct{ X, Y, Height int }

// failuresPage shows what failed within a window, by kind of failure.
func (p *Pages) failuresPage(w http.ResponseWriter, r *http.Request) error {
	given, err := api.SwitchParam(r.URL.Query(), "given_up")
	if err != nil {
		return err
	}
	shown := failuresView{GivenUp: given}
	query, span, err := p.ReadSpan(r, "Failures", &shown.Frame, func(tx *ledger.Tx, s query.Lanes) error {
		found, err := query.Failures{Span: s.Span, By: query.ByCause, Limit: maxFailures, Jobs: true,
			GivenUp: given, Steps: api.FailureSteps}.Read(r.Context(), tx)
		if err != nil {
			return err
		}
		versions := make(map[string]int)
		for _, g := range found.List {
			maps.Copy(versions, g.Versions)
		}
		shown.Attempts, shown.Omitted = found.Attempts, found.More
		for _, g := range found.List {
			v := p.failureView(g, versions)
			v.addLinks(s, &shown.Frame, door.CallerOf(r.Context()))
			if s.Worker != "" {
				if err := v.addFound(r.Context(), tx, &shown.Frame); err != nil {
					return err
				}
			}
			shown.Groups, shown.Retries = append(shown.Groups, v), shown.Retries || v.Retry != ""
		}
		return nil
	})
	if err != nil {
		return err
	}
	shown.SetWindow(p.Site, query, span)
	shown.Live = shown.Ago == "" && !query.Has("to")
	other := api.Cloned(query)
	if other.Del("given_up"); !given {
		other.Set("given_up", "true")
	}
	shown.Toggled = r.URL.Path + "?" + other.Encode()
	command := []string{"report", "failures", "--cause", "--from=" + shown.From, "--to=" + shown.To}
	between := url.Values{"from": {shown.From}, "to": {shown.To}}
	for _, name := range []string{"queue", "worker"} {
		if value := query.Get(name); value != "" {
			command = append(command, "--"+name+"="+value)
			between.Set(name, value)
		}
	}
	shown.Command = frame.CommandOf(command)
	if given {
		between.Set("given_up", "true")
	}
	shown.API = "/api/v1/failures?" + between.Encode()
	shown.SQL = sqltext.Failures(query.Get("queue"), query.Get("worker"), span.From.Pos, span.To.Pos)
	return p.Render(w, "failures", shown)
}

func (p *Pages) failureView(g *query.FailureGroup, versions map[string]int) failureView {
	zone := p.Now().Location()
	v := failureView{FailureGroup: g, Detail: words.Escape(g.Example),
		Cause: words.FailureText(g.Code, g.Exit), Share: fmt.Sprintf("%.0f %%", 100*g.Share()),
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
	var parts []string
	for _, state := range event.States() {
		if g.States[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", g.States[state], state))
		}
	}
	v.Became = strings.Join(parts, ", ")
	if most := slices.Max(g.Steps); most > 0 {
		for i, n := range g.Steps {
			if h := max(2, int(20*n/most)); n > 0 {
				v.Spark = append(v.Spark, sparkView{X: i * 3, Y: 22 - h, Height: h})
			}
		}
	}
	return v
}

// addLinks adds where the jobs of a row are: those that met its failure within s, and those that failed last
// by it, which caller may retry.
func (v *failureView) addLinks(s query.Lanes, f *frame.Frame, caller door.Caller) {
	q := f.FailedJobs(v.FailureGroup, s.Span)
	if q == nil {
		return
	}
	v.Find = "/jobs?" + q.Encode()
	if f.At == "" && v.LastFailed > 0 && caller.Has(door.Operate) && caller.Queue(v.Queue) {
		v.Retry = "/acts?" + url.Values{"act": {"retry"}, "pos": {strconv.FormatInt(f.Pos, 10)},
			"f_last_failure": q["failure"], "f_queue": q["queue"], "f_from": q["from"], "f_to": q["to"],
			"f_state": {event.FailedState.String()}}.Encode()
	}
}

// addFound adds where the jobs of a row are whose attempts one worker had: by their ids, if they are few.
func (v *failureView) addFound(ctx context.Context, tx *ledger.Tx, f *frame.Frame) error {
	if len(v.FailureGroup.Jobs) > maxLinked {
		return nil
	}
	found, err := projection.GetMany(ctx, tx, slices.Sorted(maps.Keys(v.FailureGroup.Jobs)))
	var jobs []act.Chosen
	for _, n := range slices.Sorted(maps.Keys(found)) {
		jobs = append(jobs, act.Chosen{ID: found[n].ID})
	}
	if len(jobs) == len(v.FailureGroup.Jobs) {
		v.Find = findOf(jobs)
		if f.At != "" {
			v.Find += "&" + f.WithMoment(url.Values{}).Encode()
		}
	}
	return err
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
