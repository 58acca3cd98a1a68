package page

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Sizes of acts on many jobs.
const (
	maxActForm = 64 << 10 // bytes
	askNumber  = 1000     // jobs, above which their number must be typed
)

// actRoutes are the forms that change something. The address of each says what to do.
func (p *Pages) actRoutes() (routes []door.Route) {
	for _, verb := range act.Verbs {
		needs := door.Read | door.Operate
		if verb == "erase" {
			needs = door.Read | door.Erase
		}
		routes = append(routes, door.Route{Pattern: "POST /jobs/{job}/" + verb, Needs: needs, Page: true,
			Handle: p.jobAct(verb)})
	}
	needs := door.Read | door.Operate
	return append(routes,
		door.Route{Pattern: "GET /acts", Needs: needs, Page: true, Handle: p.actsPage},
		door.Route{Pattern: "POST /acts", Needs: needs, Page: true, MaxBody: maxActForm, Handle: p.actsPage},
		door.Route{Pattern: "GET /acts/{pos}", Needs: door.Read, Page: true, Handle: p.actPage})
}

func (p *Pages) jobAct(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		given, err := frame.Form(r)
		if err != nil {
			return err
		}
		request := act.Request{Reason: strings.TrimSpace(given.Get("reason")), Now: given.Get("now") == "true",
			Succeeded: given.Get("succeeded") == "true"}
		if request.Reason == "" {
			return frame.ErrReason
		}
		seq, err := strconv.ParseInt(given.Get("seq"), 10, 64)
		if request.Seqs = []int64{seq}; err != nil || seq < 1 {
			return door.Refusal(http.StatusBadRequest, "usage", "the form does not say which state of the job you saw")
		}
		if verb == "reschedule" {
			heard, err := when.Spoken(given.Get("run_at"), p.Now(), true)
			if err != nil {
				bad := door.BadInput("run_at", fmt.Sprintf("%q %s", given.Get("run_at"), err))
				bad.Hint = new(when.NextForms)
				return bad
			}
			request.RunAt = &heard.Time
		}
		if verb == "erase" && given.Get("sure") != "true" {
			return door.Refusal(http.StatusBadRequest, "usage", "erasing cannot be undone: tick the box")
		}
		j, err := p.Acts.Job(r.Context(), verb, r.PathValue("job"), request)
		if err != nil {
			return err
		}
		p.Door.SeeOther(w, r, "/jobs/"+url.PathEscape(string(j.ID)))
		return nil
	}
}

// actsView is what the page of an act on many jobs shows.
type actsView struct {
	frame.Frame
	Did    act.Tally
	Filter []frame.Param // of the set
	Jobs   []act.Chosen  // that were ticked; none: it is all that Filter selects
	Reason string
	Spread string
	Events string // the address of what was done
	Find   string // the address of the jobs
	Ask    bool   // their number must be typed
	Verb   string // as on the button
	Why    string // of some it is not possible
	Actor  string
	Began  string
	About  string // the address of the queue or the schedule that it was done to; "": it is about jobs
	Act    string // what was done, as its events say it; "": nothing was
	Same   string // the command line that does the same; "": there is none
}

// setOf reads which jobs a form is about: all that its filter selects, or those that are ticked.
func setOf(given url.Values) (filter []frame.Param, jobs []act.Chosen, err error) {
	bad := func(text string) error { return door.Refusal(http.StatusBadRequest, "usage", text) }
	for _, id := range given["job"] {
		jobs = append(jobs, act.Chosen{ID: event.JobID(id)})
	}
	switch which := given.Get("which"); {
	case which != "" && which != "all" && which != "these":
		return nil, nil, bad("which is all or these")
	case which == "these" && len(jobs) == 0:
		return nil, nil, bad("no job is ticked")
	case which == "these":
		return nil, jobs, nil
	case len(jobs) > 0:
		return nil, nil, bad("some jobs are ticked, but the act is to be on all that match: choose one of the two")
	}
	for _, name := range api.ResourceAt("/jobs").Doc.Query {
		for _, value := range given["f_"+name] {
			if value != "" && name != "at" && name != "limit" {
				filter = append(filter, frame.Param{Name: name, Value: value})
			}
		}
	}
	return filter, nil, nil
}

// maxLinked is how many jobs the address of a search names.
const maxLinked = 60

// findOf is the address of the page with these jobs, or of all jobs where these are too many for one.
func findOf(jobs []act.Chosen) string {
	if len(jobs) > maxLinked {
		return "/jobs"
	}
	var terms []string
	for _, j := range jobs {
		terms = append(terms, "id:"+string(j.ID))
	}
	return "/jobs?" + url.Values{"find": {strings.Join(terms, " ")}}.Encode()
}

// previewParams are the parameters of an act's preview page.
func previewParams() []string {
	fields := words.Of(find.JobFields, func(name string) string { return "f_" + name })
	return append(fields, "act", "pos", "reason", "spread")
}

// actsPage does what a form says to many jobs, or says first what it would do.
func (p *Pages) actsPage(w http.ResponseWriter, r *http.Request) error {
	given, err := frame.Form(r)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if given, err = api.QueryOf(r); err == nil {
			err = api.CheckParams(given, previewParams())
		}
	}
	if err != nil {
		return err
	}
	m := act.Many{Verb: given.Get("act"), Reason: strings.TrimSpace(given.Get("reason")), Filter: url.Values{},
		DryRun: given.Get("do") != "yes"}
	if m.Spread, err = act.ParseSpread(given.Get("spread")); err != nil {
		return err
	}
	if m.Pos, err = strconv.ParseInt(given.Get("pos"), 10, 64); err != nil || m.Pos < 1 {
		return door.Refusal(http.StatusBadRequest, "usage",
			"the form does not say at which position you saw the jobs")
	}
	shown := actsView{Reason: m.Reason, Spread: given.Get("spread")}
	if shown.Filter, m.Jobs, err = setOf(given); err != nil {
		return err
	}
	for _, one := range shown.Filter {
		m.Filter.Add(one.Name, one.Value)
	}
	shown.Jobs = m.Jobs
	if !m.DryRun {
		if m.Reason == "" {
			return frame.ErrReason
		}
		set, err := p.Acts.Set(r.Context(), m)
		if err != nil {
			return err
		}
		if len(set) > askNumber && given.Get("number") != strconv.Itoa(len(set)) {
			return door.BadInput("number", fmt.Sprintf("type how many jobs there are: %d", len(set)))
		}
	}
	if shown.Did, err = p.Acts.Many(r.Context(), m); err != nil {
		return err
	}
	if shown.Did.Done > 0 {
		p.Door.SeeOther(w, r, didAt(shown.Did))
		return nil
	}
	if m.DryRun {
		var why []string
		for _, state := range slices.Sorted(maps.Keys(shown.Did.Why)) {
			why = append(why, fmt.Sprintf("%d %s", shown.Did.Why[state], state))
		}
		shown.Why = strings.Join(why, ", ")
		shown.Same, shown.Verb = sameAs(m, shown.Filter, shown.Spread), strings.ToUpper(m.Verb[:1])+m.Verb[1:]
	}
	shown.Ask = m.DryRun && shown.Did.Selected > askNumber
	shown.Find = "/jobs?" + m.Filter.Encode()
	if len(m.Jobs) > 0 {
		shown.Find = findOf(m.Jobs)
	}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		shown.Frame, err = p.FrameAt(r, url.Values{}, tx, frame.Moment{}, strings.ToUpper(m.Verb[:1])+m.Verb[1:])
		return err
	})
	if err != nil {
		return err
	}
	shown.Link, shown.Timeless = "", true
	return p.Render(w, "acts", shown)
}
