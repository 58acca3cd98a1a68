package page

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/queues"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// maxFailed is how many groups of failures the overview shows.
const maxFailed = 8

// addConcern adds c.
func (v *overviewView) addConcern(c state.Concern) {
	shown := frame.Concern{Level: frame.LevelNames[c.Level], Queue: c.Queue, Subject: "Workers", Text: c.Text,
		Code: c.Code,
		Href: "/queues/" + url.PathEscape(c.Queue) + v.AtQuery()}
	switch {
	case c.Schedule != "":
		shown.Subject, shown.Href = c.Schedule, v.ScheduleAddress(c.Schedule)
	case c.Code == string(verdict.Inbox):
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
		row := queues.NewCourse(q, p, now)
		row.Href = "/queues/" + url.PathEscape(q.Name) + v.AtQuery()
		v.Course = append(v.Course, row)
		if p != nil {
			ok, failed = ok+p.PerMinute(p.Succeeded), failed+p.PerMinute(p.Failed)
		}
	}
	if len(f.Queues) > 1 {
		row := queues.NewCourse(total, nil, now)
		row.OK, row.Failed, row.Clear = queues.Rate(ok), queues.Rate(failed), ""
		v.Course = append(v.Course, row)
	}
	v.Acts = frame.NewDid(f.Acts, now)
	v.Failed = v.FailedOf("failures of the last hour", f.Codes, f.Hour, maxFailed, now.Location())
}
