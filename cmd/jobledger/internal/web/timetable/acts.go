package timetable

import (
	"fmt"
	"net/http"
	"strings"

	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
)

// actView is a form that does something to a schedule.
type actView struct {
	Verb, Title string
	About       string // what it will do
	Same        string // the command line that does the same
	Open        bool   // the reader came for it
	Reason      bool   // it asks for one: the event has it
	Danger      bool
}

// addActs adds what can be done to the schedule now; open is the one that the reader chose.
func (v *oneView) addActs(open string) {
	next := "It never ticks again."
	if len(v.Upcoming) > 0 {
		next = "The next tick stays: " + v.Upcoming[0].Text + "."
	} else if v.Paused {
		next = "It stays paused."
	}
	add := func(verb, title, about string) {
		same := []string{"schedule", verb}
		one := actView{Verb: verb, Title: title, About: about, Open: open == verb, Reason: verb != "run",
			Danger: verb == "remove"}
		if one.Reason {
			same = append(same, "--reason=…")
		}
		one.Same = frame.CommandOf(same, v.Name)
		v.Acts = append(v.Acts, one)
	}
	add("run", "Run now", "One job is enqueued in "+v.Queue+" now, besides the ticks. "+next)
	if v.Paused {
		add("resume", "Resume", "It ticks again, from the first moment after this one: what would have ticked "+
			"meanwhile was not missed.")
	} else {
		about := "It ticks no more until it is resumed."
		if len(v.Upcoming) > 0 {
			about += " The first tick that does not come is that of " + v.Upcoming[0].Text + "."
		}
		add("pause", "Pause", about)
	}
	add("remove", "Remove", "There is no such schedule any more. Its jobs and its history stay.")
}

// actRoutes are the forms of a schedule.
func (p *Pages) actRoutes() (routes []door.Route) {
	for _, verb := range act.ScheduleVerbs {
		routes = append(routes, door.Route{Pattern: "POST /schedules/{schedule}/" + verb,
			Needs: door.Read | door.Operate, Page: true, Handle: p.act(verb)})
	}
	return routes
}

// act carries out a form, and leads to the address of what it did: the job that it made, or the event.
func (p *Pages) act(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		given, err := frame.Form(r)
		if err != nil {
			return err
		}
		reason := strings.TrimSpace(given.Get("reason"))
		if reason == "" && verb != "run" {
			return frame.ErrReason
		}
		did, err := p.Acts.Schedule(r.Context(), verb, r.PathValue("schedule"), reason)
		switch {
		case err != nil:
			return err
		case did.Job.ID != "":
			p.Door.SeeOther(w, r, "/jobs/"+string(did.Job.ID))
		case !did.Changed:
			is := map[string]string{"pause": "is paused already", "resume": "is not paused"}[verb]
			return door.Refusal(http.StatusConflict, "conflict", "the schedule "+did.Name+" "+is+
				": nothing was changed")
		default:
			p.Door.SeeOther(w, r, fmt.Sprintf("/acts/%d?to=pos:%d", did.Pos, did.Pos))
		}
		return nil
	}
}
