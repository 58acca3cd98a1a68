package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/draw"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/graph"
	"jobledger/projection/query"
)

// jobView is what the page of a job shows.
type jobView struct {
	frame.Frame
	Job      state.Job
	State    string
	Pairs    [][2]string
	Why      []string
	Zombies  []query.Zombie
	Graph    *draw.Graph // what it waits for and what waits for it; nil: nothing does
	Bar      *draw.Bar   // nil: no worker has had it
	Attempts *words.Table
	History  []frame.Event
	Acts     []actView
	NoErase  bool // it could be erased, where the server allowed that
	Payload  bodyView
	Result   *bodyView // nil: there is none
	Level    string    // how the state looks
	Withheld bool      // payload, result and logs, which this caller may not see
	Logs     []logView
	Earlier  int // attempts before those of Logs
}

// levels are the states that an operator should look at.
var levels = map[event.State]string{event.FailedState: "problem", event.CancelledState: "warning",
	event.Blocked: "warning"}

// actView is something that can be done to a job.
type actView struct{ Verb, Title string }

// jobPage shows what the verbs show, why, attempts and history print of one job, all of one snapshot.
func (p *Pages) jobPage(w http.ResponseWriter, r *http.Request) error {
	params, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	id := r.PathValue("job")
	for name := range params {
		if name != "at" {
			return door.Refusal(http.StatusBadRequest, "usage", "the page of a job has no parameter but at")
		}
	}
	if !api.IsJobID(id) {
		return door.Refusal(http.StatusBadRequest, "usage", "this is not the id of a job")
	}
	var view jobView
	var claims []query.Attempt
	var why state.Why
	now, past := p.Now(), false
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.Begin(&view.Frame, r, params, tx, "Job")
		if err != nil {
			return err
		}
		now, past = p.Clock(m).At, m.Given
		view.Job, why, err = p.readJob(r, tx, find.Ref{ID: id}, m)
		if err != nil {
			return err
		}
		around, err := graph.Around{Job: view.Job.Job, At: m.Or(now), Depth: api.Depth}.Read(r.Context(), tx)
		if err != nil {
			return err
		}
		view.Graph = draw.NewGraph(around)
		to := m.Moment
		if !m.Given {
			if to, err = projection.AtPos(r.Context(), tx, view.Pos); err != nil {
				return err
			}
		}
		claims, err = query.Attempts{Span: query.Span{To: to, At: m.Moment}, Job: view.Job.N}.Read(r.Context(), tx)
		return err
	})
	if err != nil {
		return err
	}
	j := view.Job
	view.Title, view.State, view.Why = string(j.ID), j.State.String(), why.Sentences
	view.Level = levels[j.State]
	view.Command = frame.CommandOf(append([]string{"show"}, asOf(view.At, string(j.ID))...))
	view.Pairs = slices.DeleteFunc(print.JobPairs(j, now, true), func(pair [2]string) bool {
		return pair[1] == "" || pair[0] == "payload" || pair[0] == "result" || pair[0] == "job"
	})
	if view.Withheld = !api.MaySeeBodies(r.Context()); !j.Erased && !view.Withheld {
		view.Payload = bodyOf(j.Payload)
		if j.Result != nil {
			view.Result = new(bodyOf(j.Result))
		}
	}
	if view.Live, view.LiveJob = !past, string(j.ID); !past {
		for _, verb := range act.Possible(door.CallerOf(r.Context()), j.Job) {
			if verb == "unblock" && !slices.Contains(why.WaitsFor, verb) { // it has no hold
				continue
			}
			view.Acts = append(view.Acts, actView{verb, strings.ToUpper(verb[:1]) + verb[1:]})
		}
		view.NoErase = act.NeedsAllow(door.CallerOf(r.Context()), j.Job)
	}
	view.SQL = fmt.Sprintf("SELECT * FROM history WHERE job = '%s' ORDER BY pos", j.ID)
	view.API = "/api/v1/jobs/" + string(j.ID)
	view.Zombies = query.Zombies(j.Events)
	if len(claims) > 0 {
		view.Attempts = print.Attempts()
		for _, a := range claims {
			print.AddAttempt(view.Attempts, a, now)
		}
		view.Bar = draw.NewBar(j, claims, now)
		if !view.Withheld {
			if view.Logs, view.Earlier, err = p.jobLogs(j, claims); err != nil {
				return err
			}
		}
	}
	for _, l := range print.HistoryLines(j.Events) {
		v := p.EventOf(l.Event)
		v.After, v.More = l.After, l.Skipped
		view.History = append(view.History, v)
	}
	view.sayErrorOnce()
	return p.Render(w, "job", &view)
}

// sayErrorOnce leaves the last error out of the history and of the logs, where it is above already.
func (v *jobView) sayErrorOnce() {
	text := v.Job.ErrorDetail
	if text == "" {
		return
	}
	for i := range slices.Backward(v.History) {
		if e := &v.History[i]; e.Error == text {
			e.Error, e.Above = "", true
			break
		}
	}
	for i := range v.Logs {
		if l := &v.Logs[i]; l.Whole && strings.TrimSpace(l.Tail) == strings.TrimSpace(text) {
			l.Tail, l.Note = "", strings.TrimSpace(l.Note+" the error above")
		}
	}
}

// asOf returns the words of a command about the job id.
func asOf(at, id string) []string {
	if at == "" {
		return []string{id}
	}
	return []string{id, "--as-of=" + at}
}

// readJob reads the job and why it is in its state.
func (p *Pages) readJob(r *http.Request, tx *ledger.Tx, ref find.Ref, m frame.Moment) (j state.Job,
	why state.Why, err error) {
	ctx := r.Context()
	now, err := ref.Find(ctx, tx)
	if err != nil {
		return j, why, err
	}
	if j, err = state.ReadJob(ctx, tx, now, m.AsOf()); err == nil && j.State == 0 {
		err = api.NotYet(j.ID, j.Later)
	}
	if err != nil {
		return j, why, err
	}
	why, err = state.Explain(ctx, tx, now, m.Past, p.Now())
	return j, why, err
}
