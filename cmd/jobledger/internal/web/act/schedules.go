package act

import (
	"cmp"
	"context"
	"net/http"
	"time"

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
	if err == nil && did.Changed {
		did.Pos, err = a.changedAt(ctx, name)
	}
	return did, err
}

// changedAt is the position of the last change of the schedule by the caller.
func (a *Acts) changedAt(ctx context.Context, name string) (pos int64, err error) {
	err = a.Store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		changes, err := schedules.Changes(ctx, tx, name, tail)
		for _, e := range changes {
			if e.Actor == door.CallerOf(ctx).Actor {
				pos = e.Pos
				break
			}
		}
		return err
	})
	return pos, err
}

// ScheduleSetAt returns the last event that set the schedule of this name; the zero event: there is no such
// schedule.
func ScheduleSetAt(ctx context.Context, tx *ledger.Tx, name string) (event.Event, error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return event.Event{}, err
	}
	changes, err := schedules.Changes(ctx, tx, name, tail)
	for _, e := range changes {
		switch e.Kind() {
		case event.KindScheduleSet:
			return e, nil
		case event.KindScheduleRemoved:
			return event.Event{}, nil
		}
	}
	return event.Event{}, err
}

// SetSchedule makes a schedule be as spec says, if the event that set it last is at one of the positions
// seen; nil: whatever it is.
func (a *Acts) SetSchedule(ctx context.Context, spec event.ScheduleSet, reason string, seen []int64) (
	change schedule.Change, pos int64, err error) {
	service := *a.Service
	service.If = func(ctx context.Context, tx *ledger.Tx) error {
		if seen == nil {
			return nil
		}
		last, err := ScheduleSetAt(ctx, tx, spec.Name)
		return cmp.Or(err, unlessSeen(last, seen))
	}
	k := &schedule.Keeper{Service: &service, Actor: door.CallerOf(ctx).Actor}
	changes, err := k.Apply(ctx, []event.ScheduleSet{spec}, false, reason)
	if err != nil {
		return change, 0, err
	}
	if change = changes[0]; change.Done != schedule.Unchanged {
		pos, err = a.changedAt(ctx, spec.Name)
	}
	return change, pos, err
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
	routes = append(routes, door.Route{Pattern: "POST " + api.Root + "/schedules/preview", Needs: door.Read,
		Queues: true, MaxBody: maxBody, Handle: a.previewSchedule, Doc: door.Doc{ID: "previewSchedule",
			Body: previewBody{}, Answer: previewAnswer{},
			Example: `{"cron": "30 2 * * *", "zone": "Europe/Berlin", "number": 3}`,
			Summary: "When a schedule would tick, as the command schedule preview prints it. It sets nothing."}})
	return append(routes, door.Route{Pattern: "PUT " + api.Root + "/schedules/{schedule}", Needs: door.Operate,
		MaxBody: maxBody, Handle: a.setSchedule, Doc: door.Doc{ID: "putSchedule", Body: scheduleBody{},
			Answer:  print.ScheduleJSON{},
			Example: `{"queue": "backup", "cron": "30 2 * * *", "zone": "Europe/Berlin", "reason": "release 17"}`,
			Summary: "Makes a schedule be as the body says, as the command schedule set does. The same again " +
				"changes nothing."}})
}

// previewBody says when a schedule is to tick.
type previewBody struct {
	Cron  string `json:"cron,omitempty"`
	Zone  string `json:"zone,omitempty"`  // of cron; left out: UTC
	Every string `json:"every,omitempty"` // in place of cron
	// RFC 3339: where to begin, and what every counts from; left out: now
	From   string `json:"from,omitempty"`
	Number int    `json:"number,omitempty" openapi:"minimum=1,maximum=1000"` // of ticks; left out: 5
}

// previewAnswer are the next ticks.
type previewAnswer struct {
	Ticks []print.PreviewJSON `json:"ticks"`
}

// previewSchedule answers when a schedule would tick.
func (a *Acts) previewSchedule(w http.ResponseWriter, r *http.Request) error {
	var body previewBody
	if err := read(r, &body); err != nil {
		return err
	}
	switch {
	case body.Number == 0:
		body.Number = 5
	case body.Number < 1 || body.Number > 1000:
		return door.BadInput("number", "number is from 1 to 1000")
	}
	from := a.Now()
	if body.From != "" {
		t, err := time.Parse(time.RFC3339, body.From)
		if err != nil {
			return door.BadInput("from", "from is a time such as 2026-05-04T15:04:05Z")
		}
		from = t
	}
	spec, err := print.SpecJSON{Name: "preview", Queue: "preview", Cron: body.Cron, Zone: body.Zone,
		Every: body.Every}.Spec()
	if err != nil {
		return err
	}
	if spec.Every > 0 {
		spec.From = from
	}
	spec = schedule.Complete(spec)
	if err := schedule.Check(spec); err != nil {
		return err
	}
	ticks, err := print.Preview(spec, from, body.Number)
	if err != nil {
		return err
	}
	answer := previewAnswer{[]print.PreviewJSON{}}
	for _, t := range ticks {
		answer.Ticks = append(answer.Ticks, print.NewPreviewJSON(spec, t))
	}
	return a.send(w, r, answer)
}

// scheduleBody is the wanted state of a schedule.
type scheduleBody struct {
	print.SpecJSON `openapi:"optional=name"` // left out, it is that of the address
	Reason         string                    `json:"reason,omitempty"` // why, as the event says it
}

// setSchedule makes a schedule be as the body says.
func (a *Acts) setSchedule(w http.ResponseWriter, r *http.Request) error {
	var body scheduleBody
	if err := read(r, &body); err != nil {
		return err
	}
	name := r.PathValue("schedule")
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
	change, _, err := a.SetSchedule(r.Context(), spec, body.Reason, nil)
	if err != nil {
		return err
	}
	id, err := ledger.Read(r.Context(), a.Store, func(tx *ledger.Tx) (event.JobID, error) {
		return change.LastJobID(r.Context(), tx)
	})
	shown := print.NewScheduleJSON(change.Schedule, id)
	if shown.Done = change.Done; !api.MaySeeBodies(r.Context()) {
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
