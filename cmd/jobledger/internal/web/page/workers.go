package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/layout"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/history"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/status"
)

// workersView is what the page of workers shows.
type workersView struct {
	frame
	Workers []workerView
	Silent  int
}

// workerView is a worker process.
type workerView struct {
	status.Worker
	Process, Started, Seen string
	Queues, Capabilities   string
	Held                   int
	Done, Failed, Lost     int // in the last hour
	Page                   string
}

// workersPage shows what the verb workers prints, and what each did in the last hour.
func (p *Pages) workersPage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	all, err := api.SwitchParam(query, "all")
	if err != nil {
		return err
	}
	var shown workersView
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.momentOf(r, query, tx)
		if err != nil {
			return err
		}
		if shown.frame, err = p.frameAt(r, query, tx, m, "Workers"); err != nil {
			return err
		}
		now := p.clock(m).At
		shown.SQL = heldSQL(time.Time{})
		var found []status.Worker
		if m.Given {
			shown.SQL = heldSQL(now)
			found, err = status.WorkersAsOf(r.Context(), tx, m.Moment, all)
		} else {
			found, err = status.Workers(r.Context(), tx, now, all)
		}
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
		did := make(map[string]map[event.Kind]int)
		if shown.Pos > 0 {
			claims, err := attempts.List(r.Context(), tx, attempts.Filter{From: from, To: to})
			if err != nil {
				return err
			}
			for _, a := range claims {
				if a.Outcome != 0 && !a.EndedAt.After(now) {
					if did[a.Worker.Boot] == nil {
						did[a.Worker.Boot] = make(map[event.Kind]int)
					}
					did[a.Worker.Boot][a.Outcome]++
				}
			}
		}
		for _, found := range found {
			v := p.workerView(found, now)
			n := did[found.Boot]
			v.Done, v.Failed, v.Lost = n[event.KindSucceeded], n[event.KindFailed], n[event.KindReclaimed]
			if found.State == status.Silent {
				shown.Silent++
			}
			shown.Workers = append(shown.Workers, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(shown.Workers, func(a, b workerView) int {
		return cmp.Compare(a.Name, b.Name)
	})
	shown.Command = commandOf(append([]string{"workers"}, atFlag(shown.At)...))
	shown.API = "/api/v1/workers"
	return p.render(w, "workers", shown)
}

// atFlag is the flag for the moment of a page.
func atFlag(at string) []string {
	if at == "" {
		return nil
	}
	return []string{"--as-of=" + at}
}

func (p *Pages) workerView(w status.Worker, now time.Time) workerView {
	v := workerView{Worker: w, Process: render.Process(w.Worker), Queues: strings.Join(w.Queues, ", "),
		Capabilities: strings.Join(w.Capabilities, ", "), Held: len(w.Jobs), Seen: layout.SeenAtWork(w, now),
		Page: "/workers/" + url.PathEscape(w.Name)}
	if !w.StartedAt.IsZero() {
		v.Started = render.AgeOrOn(w.StartedAt, now)
	}
	return v
}

// oneWorkerView is what the page of one worker shows.
type oneWorkerView struct {
	spanView
	Name     string
	Source   string
	Lanes    *history.Lanes
	Findings []history.Finding
	Held     *render.Table // of each process that fell silent: what it held
	Refused  []eventView
	Attempts *render.Table
}

// workerPage shows one worker: its processes, its lane, what it lost.
func (p *Pages) workerPage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("worker")
	shown := oneWorkerView{Name: name}
	query, span, err := p.readSpan(r, name, &shown.frame, func(tx *ledger.Tx, s history.Span) (err error) {
		s.Columns, s.Worker = 1200, name
		if shown.Lanes, err = history.ReadLanes(r.Context(), tx, s); err != nil {
			return err
		}
		if shown.Findings, err = shown.Lanes.Findings(r.Context(), tx, s, p.Now().Location()); err != nil {
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
			then, err := status.WorkersAsOf(r.Context(), tx, at, true)
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
	shown.set(p, query, span)
	shown.Source = "/api/v1/lanes?" + url.Values{"from": {shown.From}, "to": {shown.To},
		"worker": {name}}.Encode()
	shown.Attempts = layout.Attempts()
	all := shown.Lanes.All
	for _, a := range slices.Backward(all[max(0, len(all)-maxTable):]) {
		layout.AddAttempt(shown.Attempts, a, span.To.At.In(p.Now().Location()))
	}
	for i := range shown.Nav {
		shown.Nav[i].Current = shown.Nav[i].Name == "Workers"
	}
	shown.Command = commandOf([]string{"attempts", "--worker=" + name, "--from=" + shown.From,
		"--to=" + shown.To})
	shown.API = shown.Source
	shown.SQL = "SELECT job, attempt, claimed_at, ended_at, outcome FROM attempts WHERE worker = " +
		sqlText(name) + " AND claimed_at <= " + sqlTime(span.To.At) + " ORDER BY claimed_at"
	return p.render(w, "worker", shown)
}

// addHeld adds what a process held when it fell silent.
func (v *oneWorkerView) addHeld(l status.LostWorker, jobs []projection.Job, zone *time.Location) {
	if v.Held == nil {
		v.Held = &render.Table{Columns: []render.Column{{Title: "PROCESS"}, {Title: "LAST SIGN OF LIFE"},
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
	v.Held.Add(render.Process(l.Worker.Worker), render.Time(l.SeenAt.In(zone)), cmp.Or(held, "nothing"))
}
