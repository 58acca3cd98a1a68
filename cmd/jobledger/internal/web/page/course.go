package page

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/query"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// maxCodes is how many groups of failures the overview shows.
const maxCodes = 8

// courseView is how a queue goes, for people.
type courseView struct {
	Name, Href                  string
	Paused                      bool
	Ready, Oldest, Later, Held  string
	OK, Failed, P50, P99, Clear string
	Spark                       *chart.Spark
}

// codeView is a group of failures of the overview.
type codeView struct {
	*query.FailureGroup
	Between, Find string
}

// addConcern adds c.
func (v *overviewView) addConcern(c state.Concern) {
	shown := concernView{Level: levelNames[c.Level], Queue: c.Queue, Text: c.Text, Code: c.Code,
		Href: "/queues/" + url.PathEscape(c.Queue) + v.AtQuery()}
	switch {
	case c.Code == string(verdict.Schedule):
		shown.Href = ""
	case c.Queue == "":
		shown.Href = "/workers" + v.AtQuery()
	}
	if c.Remedy != "" && v.At == "" {
		shown.Remedy = buildinfo.ProgramName + " " + c.Remedy
	}
	if c.Level == state.Info {
		v.Notes = append(v.Notes, shown)
		return
	}
	v.Needs = append(v.Needs, shown)
}

// sum says how many problems and warnings there are, and leaves out those beyond MostLines.
func (v *overviewView) sum() {
	counts := make(map[string]int64)
	for _, c := range v.Needs {
		counts[c.Level]++
	}
	var parts []string
	for _, level := range []string{"problem", "warning"} {
		if counts[level] > 0 {
			parts = append(parts, words.Count(counts[level], level))
		}
	}
	v.Verdict = strings.Join(parts, ", ")
	v.More = state.More(len(v.Needs))
	v.Needs = v.Needs[:min(len(v.Needs), state.MostLines)]
}

// addCrew says how many workers are in which state.
func (v *overviewView) addCrew(workers []status.Worker) {
	states := make(map[status.WorkerState]int)
	for _, w := range workers {
		states[w.State]++
	}
	var crew []string
	for _, s := range []status.WorkerState{status.Working, status.Idle, status.Silent} {
		if states[s] > 0 {
			crew = append(crew, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	v.Crew = strings.Join(crew, " · ")
}

// addCourse adds how the queues go, of which total is the sum, what failed, and what operators did.
func (v *overviewView) addCourse(f view.Figures, total status.Queue, now time.Time) {
	var ok, failed float64
	for _, q := range f.Queues {
		p := f.Paces[q.Name]
		row := newCourse(q, p, now)
		row.Href = "/queues/" + url.PathEscape(q.Name) + v.AtQuery()
		v.Course = append(v.Course, row)
		if p != nil {
			ok, failed = ok+p.PerMinute(p.Succeeded), failed+p.PerMinute(p.Failed)
		}
	}
	if len(f.Queues) > 1 {
		row := newCourse(total, nil, now)
		row.OK, row.Failed, row.Clear = rate(ok), rate(failed), ""
		v.Course = append(v.Course, row)
	}
	v.Acts = frame.NewDid(f.Acts, now)
	clock := func(t time.Time) string { return t.In(now.Location()).Format("15:04:05") }
	v.Omitted = max(0, len(f.Codes.List)-maxCodes)
	for _, c := range f.Codes.List[:min(len(f.Codes.List), maxCodes)] {
		v.Codes = append(v.Codes, codeView{c, clock(c.First) + "–" + clock(c.Last),
			"/jobs?" + v.WithAt(url.Values{"queue": {c.Queue}, "error": {c.Code}}).Encode()})
	}
}

// newCourse is how q goes at now; without a pace only how many jobs it has.
func newCourse(q status.Queue, p *view.Pace, now time.Time) courseView {
	v := courseView{Name: q.Name, Paused: q.Paused, Ready: fmt.Sprint(q.Ready), Oldest: "-",
		Later: fmt.Sprint(q.Scheduled), Held: fmt.Sprint(q.Jobs[event.ClaimedState] + q.Jobs[event.Running])}
	if !q.OldestReady.IsZero() {
		v.Oldest = words.Roughly(now.Sub(q.OldestReady))
	}
	if p == nil {
		return v
	}
	v.OK, v.Failed = rate(p.PerMinute(p.Succeeded)), rate(p.PerMinute(p.Failed))
	v.P50, v.P99 = quantile(p.Waits.P50, p.Waits), quantile(p.Waits.P99, p.Waits)
	v.Clear = clearIn(q, p)
	most, at, failed := int64(0), 0, int64(0)
	for i, n := range p.Depth {
		if n > most {
			most, at = n, i
		}
		failed += p.Fails[i]
	}
	about := "never a job was queued"
	if most > 0 {
		about = fmt.Sprintf("up to %s queued, from %s on", words.Count(most, "job"),
			p.StepAt(at).In(now.Location()).Format("15:04"))
	}
	v.Spark = chart.NewSpark(q.Name+" since "+p.From.In(now.Location()).Format("15:04"),
		about+"; "+words.Count(failed, "failure"), p.Depth, p.Fails)
	return v
}

// clearIn says when the jobs of q that are ready are claimed, at the rate of the last ten minutes.
func clearIn(q status.Queue, p *view.Pace) string {
	if q.Ready == 0 {
		return "-"
	}
	if q.Paused {
		return "paused"
	}
	d, ok := p.ClearIn(q.Ready)
	if !ok {
		return "never, at this rate"
	}
	return words.Roughly(d)
}

// rate is how often a minute something happens.
func rate(n float64) string { return fmt.Sprintf("%.1f", n) }

// quantile is d of q with two digits.
func quantile(d time.Duration, q view.Quantiles) string {
	switch {
	case q.Count == 0:
		return "-"
	case d == view.Unbounded:
		return "over " + words.Roughly(view.MinuteEnds[len(view.MinuteEnds)-1])
	}
	return frame.ShortWait(d)
}
