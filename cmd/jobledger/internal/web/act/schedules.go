package act

import (
	"context"
	"net/http"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/schedules"
)

// ScheduleVerbs are what can be done to a schedule.
var ScheduleVerbs = []string{"run", "pause", "resume", "remove"}

// Scheduled is what was done to a schedule.
type Scheduled struct {
	Name    string
	Changed bool           // false: it was so already
	Pos     int64          // of the event that says it; 0: there is none
	Job     projection.Job // that run made
}

// Schedule carries out verb on the schedule of this name. Run has no reason: the event of a job has none.
func (a *Acts) Schedule(ctx context.Context, verb, name, reason string) (did Scheduled, err error) {
	caller := door.CallerOf(ctx)
	if !caller.Has(door.Operate) || !caller.AllQueues() {
		return did, door.Refusal(http.StatusForbidden, "forbidden", "this credential has no right to do this")
	}
	did.Name = name
	k := &schedule.Keeper{Service: a.Service, Actor: caller.Actor}
	switch verb {
	case "run":
		did.Job, err = k.Run(ctx, name, "")
		did.Changed, did.Pos = true, did.Job.N
		return did, err
	case "pause":
		_, did.Changed, err = k.Suspend(ctx, name, reason)
	case "resume":
		_, did.Changed, err = k.Resume(ctx, name, reason)
	case "remove":
		err, did.Changed = k.Remove(ctx, name, reason), true
	}
	if err != nil || !did.Changed {
		return did, err
	}
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		changes, err := schedules.Changes(ctx, tx, name, tail)
		for _, e := range changes {
			if e.Actor == caller.Actor {
				did.Pos = e.Pos
				break
			}
		}
		return err
	})
	return did, err
}

// scheduleAct is what became of a schedule.
type scheduleAct struct {
	Changed  bool   `json:"changed"` // false: it was so already
	Schedule string `json:"schedule"`
	Pos      *int64 `json:"pos"` // of the event; null: there is none
}

// scheduleRoutes are those of the API.
func (a *Acts) scheduleRoutes() (routes []door.Route) {
	summaries := map[string]string{"run": "Enqueues a job of a schedule now, besides its ticks.",
		"pause": "Pauses a schedule: it ticks no more until it is resumed.", "resume": "Resumes a schedule.",
		"remove": "Removes a schedule. Its jobs and its history stay."}
	for _, verb := range ScheduleVerbs {
		doc := door.Doc{ID: verb + "Schedule", Summary: summaries[verb], Answer: scheduleAct{}, Body: reason{},
			Maybe: true, Example: `{"reason": "the shop is closed"}`}
		if verb == "run" {
			doc.Answer, doc.Body, doc.Maybe, doc.Example = wire.Job{}, nil, false, ""
		}
		routes = append(routes, door.Route{Pattern: "POST " + api.Root + "/schedules/{schedule}/" + verb,
			Needs: door.Operate, MaxBody: maxBody, Handle: a.scheduleHandler(verb), Doc: doc})
	}
	return append(routes, door.Route{Pattern: "PUT " + api.Root + "/schedules/{schedule}", Needs: door.Operate,
		MaxBody: maxBody, Handle: a.setSchedule, Doc: door.Doc{ID: "putSchedule", Body: scheduleBody{},
			Answer:  print.ScheduleJSON{},
			Example: `{"queue": "backup", "cron": "30 2 * * *", "zone": "Europe/Berlin", "reason": "release 17"}`,
			Summary: "Makes a schedule be as the body says, as the command schedule set does. The same again " +
				"changes nothing."}})
}

// scheduleBody is the wanted state of a schedule.
type scheduleBody struct {
	print.SpecJSON
	Reason string `json:"reason,omitempty"` // why, as the event says it
}

// setSchedule makes a schedule be as the body says.
func (a *Acts) setSchedule(w http.ResponseWriter, r *http.Request) error {
	var body scheduleBody
	if err := read(r, &body); err != nil {
		return err
	}
	name, caller := r.PathValue("schedule"), door.CallerOf(r.Context())
	if body.Name != "" && body.Name != name {
		return door.BadInput("name", "the name is that of the address")
	}
	body.Name = name
	if body.Form != "" {
		return &commands.InvalidError{Field: "form", Got: body.Form, Allowed: "none: a server takes no commands"}
	}
	spec, err := body.Spec()
	if err != nil {
		return err
	}
	k := &schedule.Keeper{Service: a.Service, Actor: caller.Actor}
	changes, err := k.Apply(r.Context(), []event.ScheduleSet{spec}, false, body.Reason)
	if err != nil {
		return err
	}
	id, err := ledger.Read(r.Context(), a.Store, func(tx *ledger.Tx) (event.JobID, error) {
		return changes[0].LastJobID(r.Context(), tx)
	})
	shown := print.NewScheduleJSON(changes[0].Schedule, id)
	if shown.Done = changes[0].Done; !api.MaySeeBodies(r.Context()) {
		shown = shown.WithoutBodies()
	}
	if err != nil {
		return err
	}
	return a.send(w, r, shown)
}

func (a *Acts) scheduleHandler(verb string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		var body reason
		if err := read(r, &body); err != nil {
			return err
		}
		did, err := a.Schedule(r.Context(), verb, r.PathValue("schedule"), body.Reason)
		if err != nil {
			return err
		}
		if verb == "run" {
			return a.send(w, r, words.ToJSON(did.Job))
		}
		return a.send(w, r, scheduleAct{did.Changed, did.Name, words.OrNull(did.Pos)})
	}
}
