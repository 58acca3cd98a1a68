package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/draw"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/sqltext"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// workersView is what the page of workers shows.
type workersView struct {
	frame.Frame
	Workers []workerView
	Silent  int
	Gaps    *words.Table // between heartbeats, in the last hour; nil: no heartbeat came
}

// workerView is a worker process.
type workerView struct {
	status.Worker
	Process, Started, Seen string
	Until                  string // when the first of its leases ends
	Queues, Capabilities   string
	Held                   int
	Done, Failed, Lost     int              // in the last hour
	Gaps                   *chart.Histogram // between heartbeats, in the last hour; nil: no heartbeat came
	Page                   string
	Live                   []string // commands that go on, though their claim was lost or they were to end
}

// workersPage shows what the verb workers prints, and what each did in the last hour.
func (p *Pages) workersPage(w http.ResponseWriter, r *http.Request) error {
	params, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	all, err := api.SwitchParam(params, "all")
	if err != nil {
		return err
	}
	var shown workersView
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.Begin(&shown.Frame, r, params, tx, "Workers")
		if err != nil {
			return err
		}
		now := p.Clock(m).At
		shown.SQL = sqltext.Held(time.Time{})
		if m.Given {
			shown.SQL = sqltext.Held(now)
		}
		found, err := status.Workers{At: m.Or(now), All: all}.Read(r.Context(), tx)
		if err != nil {
			return err
		}
		to, err := projection.AtPos(r.Context(), tx, shown.Pos)
		if err != nil {
			return err
		}
		from, err := projection.AtTime(r.Context(), tx, now.Add(-time.Hour))
		if err != nil {
			return err
		}
		did, err := endsOf(r.Context(), tx, query.Span{From: from, To: to, At: to})
		if err != nil {
			return err
		}
		beats, err := attempts.HeartbeatGaps(r.Context(), tx, from, to)
		if err != nil {
			return err
		}
		shown.addWorkers(p, found, did, beats, now)
		return nil
	})
	if err != nil {
		return err
	}
	shown.Live = shown.Ago == ""
	shown.Command = frame.CommandOf(append([]string{"workers"}, atFlag(shown.At)...))
	shown.API = "/api/v1/workers"
	return p.Render(w, "workers", shown)
}

// endsOf says for each process, by its boot, how its claims ended within s.
func endsOf(ctx context.Context, tx *ledger.Tx, s query.Span) (map[string]map[event.Kind]int, error) {
	did := make(map[string]map[event.Kind]int)
	if s.To.Pos == 0 { // nothing had happened
		return did, nil
	}
	claims, err := query.Attempts{Span: s}.Read(ctx, tx)
	for _, a := range claims {
		if a.Outcome != 0 {
			if did[a.Worker.Boot] == nil {
				did[a.Worker.Boot] = make(map[event.Kind]int)
			}
			did[a.Worker.Boot][a.Outcome]++
		}
	}
	return did, err
}

// addWorkers adds the processes that were found, by their names, with what each did and its heartbeats.
func (v *workersView) addWorkers(p *Pages, found []status.Worker, did map[string]map[event.Kind]int,
	beats []attempts.Gaps, now time.Time) {
	gaps := make(map[event.Worker]attempts.Gaps)
	for _, g := range beats {
		gaps[g.Worker] = g
	}
	slices.SortStableFunc(found, func(a, b status.Worker) int { return cmp.Compare(a.Name, b.Name) })
	var shown []attempts.Gaps
	for _, w := range found {
		one := p.workerView(w, now)
		n := did[w.Boot]
		one.Done, one.Failed, one.Lost = n[event.KindSucceeded], n[event.KindFailed], n[event.KindReclaimed]
		if g, ok := gaps[w.Worker]; ok {
			one.Gaps = draw.GapHistogram(w.Name, g, true)
			shown = append(shown, g)
		}
		if w.State == status.Silent {
			v.Silent++
		}
		v.Workers = append(v.Workers, one)
	}
	v.Gaps = draw.GapTable(shown, true)
}

// atFlag is the flag for the moment of a page.
func atFlag(at string) []string {
	if at == "" {
		return nil
	}
	return []string{"--as-of=" + at}
}

func (p *Pages) workerView(w status.Worker, now time.Time) workerView {
	v := workerView{Worker: w, Process: words.Process(w.Worker) + print.GoneText(w),
		Queues: strings.Join(w.Queues, ", "), Capabilities: strings.Join(w.Capabilities, ", "),
		Held: len(w.Jobs), Seen: words.AgeOrOn(w.SeenAt, now),
		Page: "/workers/" + url.PathEscape(w.Name)}
	var until time.Time // when the first of its leases ends
	for _, j := range w.Jobs {
		if until.IsZero() || j.LeaseUntil.Before(until) {
			until = j.LeaseUntil
		}
		if j.CannotEnd != "" {
			v.Live = append(v.Live, fmt.Sprintf("%s cannot be ended: %s", j.ID, j.CannotEnd))
		}
	}
	for _, c := range w.Lost {
		v.Live = append(v.Live, fmt.Sprintf("%s %s", c.Job, print.MayRun(c, now)))
	}
	if more := len(v.Live) - print.JobsShown; more > 0 {
		v.Live = append(v.Live[:print.JobsShown], fmt.Sprintf("… %d more", more))
	}
	switch {
	case until.IsZero():
	case until.After(now):
		v.Until = "ends in " + words.Roughly(until.Sub(now))
	default:
		v.Until = "over for " + words.Roughly(now.Sub(until))
	}
	if !w.StartedAt.IsZero() {
		v.Started = words.AgeOrOn(w.StartedAt, now)
	}
	return v
}

// oneWorkerView is the data of the page of one worker.
type oneWorkerView struct {
	frame.Span
	Name        string
	Source      string
	Lanes       *query.LaneChart
	Findings    []frame.Finding
	Held        *words.Table // of each process that fell silent: what it held
	Attempts    *words.Table
	Processes   *words.Table
	Gaps        *chart.Histogram // between heartbeats; nil: none came within the window
	GapTable    *words.Table
	Longest     attempts.Gaps // of all processes
	LongestText string
}

// workerPage shows one worker: its processes, its lane, what it lost.
func (p *Pages) workerPage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("worker")
	shown := oneWorkerView{Name: name}
	query, span, err := p.ReadSpan(r, name, &shown.Frame, func(tx *ledger.Tx, s query.Lanes) (err error) {
		s.Columns, s.Worker = 1200, name
		if shown.Lanes, err = s.Read(r.Context(), tx); err != nil {
			return err
		}
		if shown.Findings, err = frame.FindingsOf(r.Context(), tx, s, shown.Lanes, p.Now().Location()); err != nil {
			return err
		}
		if err := shown.addProcesses(r.Context(), tx, s, p.Now().Location()); err != nil {
			return err
		}
		lost, err := status.LostWorkers(r.Context(), tx, s.From, s.To)
		if err != nil {
			return err
		}
		for _, l := range lost {
			if l.Name != name {
				continue
			}
			at, err := projection.AtTime(r.Context(), tx, l.SeenAt)
			if err != nil {
				return err
			}
			then, err := status.Workers{At: at, All: true}.Read(r.Context(), tx)
			if err != nil {
				return err
			}
			for _, one := range then {
				if one.Boot == l.Boot {
					shown.addHeld(l, one.Jobs, p.Now().Location())
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(shown.Lanes.Lanes) == 0 && len(query["from"]) == 0 {
		shown.Window = ""
	}
	shown.SetWindow(p.Site, query, span)
	shown.Source = "/api/v1/lanes?" + shown.WithMoment(url.Values{"from": {shown.From}, "to": {shown.To},
		"worker": {name}}).Encode()
	shown.Attempts = print.Attempts()
	all := shown.Lanes.All
	for _, a := range slices.Backward(all[max(0, len(all)-frame.MaxTable):]) {
		print.AddAttempt(shown.Attempts, a, span.To.At.In(p.Now().Location()))
	}
	shown.Command = frame.CommandOf([]string{"attempts", "--worker=" + name, "--from=" + shown.From,
		"--to=" + shown.To})
	shown.API = shown.Source
	shown.SQL = sqltext.Claims(name, span.To.At)
	return p.Render(w, "worker", shown)
}

// maxProcesses is how many processes of a worker its page has, the last ones.
const maxProcesses = 50

// addProcesses adds the processes of the worker that had not stopped before s, and the gaps between their
// heartbeats.
func (v *oneWorkerView) addProcesses(ctx context.Context, tx *ledger.Tx, s query.Lanes,
	zone *time.Location) error {
	if s.To.Pos == 0 { // nothing had happened
		return nil
	}
	all, err := status.Workers{At: s.To, All: true}.Read(ctx, tx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(w status.Worker) bool {
		return w.Name != v.Name || w.State == status.Stopped && w.StoppedAt.Before(s.From.At)
	})
	slices.SortStableFunc(all, func(a, b status.Worker) int { return b.StartedAt.Compare(a.StartedAt) })
	claims, lost := make(map[string]int), make(map[string]int)
	for _, a := range v.Lanes.All {
		if claims[a.Worker.Boot]++; a.Outcome == event.KindReclaimed {
			lost[a.Worker.Boot]++
		}
	}
	v.Processes = &words.Table{Columns: []words.Column{{Title: "PROCESS"}, {Title: "STATE", State: true},
		{Title: "STARTED"},
		{Title: "LAST SIGN OF LIFE"}, {Title: "CLAIMS", Right: true}, {Title: "LOST", Right: true},
		{Title: "HOLDS", Right: true}}}
	for _, w := range all[:min(len(all), maxProcesses)] {
		v.Processes.Add(words.Process(w.Worker), string(w.State), words.Time(w.StartedAt.In(zone)),
			words.Time(w.SeenAt.In(zone)), fmt.Sprint(claims[w.Boot]), fmt.Sprint(lost[w.Boot]),
			fmt.Sprint(len(w.Jobs)))
	}
	beats, err := attempts.HeartbeatGapsOf(ctx, tx, s.From, s.To, v.Name, v.Lanes.All)
	for _, g := range beats {
		v.Longest.Add(g)
	}
	if v.GapTable = draw.GapTable(beats, false); v.GapTable != nil {
		v.Gaps = draw.GapHistogram(v.Name, v.Longest, false)
		v.LongestText = words.Briefly(v.Longest.Longest)
	}
	return err
}

// addHeld adds what a process held when it fell silent.
func (v *oneWorkerView) addHeld(l status.LostWorker, jobs []projection.Job, zone *time.Location) {
	if v.Held == nil {
		v.Held = &words.Table{Columns: []words.Column{{Title: "PROCESS"}, {Title: "LAST SIGN OF LIFE"},
			{Title: "HELD THEN"}}}
	}
	var ids []string
	for _, j := range jobs[:min(len(jobs), 20)] {
		ids = append(ids, string(j.ID))
	}
	held := strings.Join(ids, ", ")
	if len(jobs) > 20 {
		held += fmt.Sprintf(" and %d more", len(jobs)-20)
	}
	v.Held.Add(words.Process(l.Worker.Worker), words.Time(l.SeenAt.In(zone)), cmp.Or(held, "nothing"))
}
