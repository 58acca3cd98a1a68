package timetable

import (
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// Pages answers about schedules. It is safe for concurrent use.
type Pages struct {
	*frame.Site
	Acts *act.Acts
}

// Routes are the read-only routes of the API, and the routes of the pages. Each request of a page has pages
// of its own, with its zone.
func (p *Pages) Routes() []door.Route {
	pages := p.Site.InZone(func(s *frame.Site) []door.Route { return (&Pages{s, p.Acts}).pages() })
	return append(pages,
		p.API.Resource("/schedules", door.Doc{ID: "listSchedules", Query: []string{"at"}, List: true,
			Answer:  print.ScheduleJSON{},
			Summary: "The schedules, as the command schedule list prints them."}, p.list),
		p.API.Resource("/schedules/{schedule}", door.Doc{ID: "getSchedule", Query: []string{"at"},
			Answer:  print.ScheduleJSON{},
			Summary: "A schedule and its next ticks, as the command schedule show prints it."}, p.one),
		p.API.Resource("/schedules/{schedule}/ticks", door.Doc{ID: "listScheduleTicks",
			Query: []string{"at", "last"}, List: true, Answer: print.TickJSON{},
			Summary: "What became of the last ticks of a schedule, the newest first, as the command schedule " +
				"ticks prints them."}, p.ticks))
}

// pages are the routes of the pages in the zone that p has.
func (p *Pages) pages() []door.Route {
	const acts, edit = door.Read | door.Operate, "/schedules/{schedule}/edit"
	return append(p.Checked([]door.Route{
		{Pattern: "GET /schedules", Needs: door.Read, Handle: p.listPage},
		{Pattern: "GET /schedules/{schedule}", Needs: door.Read, Handle: p.onePage},
		{Pattern: "GET " + newPath, Needs: acts, Handle: p.formPage},
		{Pattern: "GET " + edit, Needs: acts, Handle: p.formPage},
	}), append(p.actRoutes(),
		door.Route{Pattern: "POST " + newPath, Needs: acts, Page: true, MaxBody: maxForm,
			Handle: p.formPage},
		door.Route{Pattern: "POST " + edit, Needs: acts, Page: true, MaxBody: maxForm,
			Handle: p.formPage})...)
}

// maxForm is the size of a form of a schedule in bytes: its payload has up to 16 KiB, as a browser sends it.
const maxForm = 64 << 10

// How many ticks are shown.
const (
	ticksShown    = 24
	upcomingShown = 5
)

// list answers with all schedules.
func (p *Pages) list(q api.Asked) (rows []any, err error) {
	all, err := schedules.At(q, q.Tx, q.Past.Or(p.API.Now()).Pos)
	for _, s := range all {
		shown, err := shownJSON(q, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, shown)
	}
	return rows, err
}

// shownJSON is s as the caller of q may see it.
func shownJSON(q api.Asked, s schedules.Schedule) (shown print.ScheduleJSON, err error) {
	id, err := s.LastJobID(q, q.Tx)
	if shown = print.NewScheduleJSON(s, id); !api.MaySeeBodies(q) {
		shown = shown.WithoutBodies()
	}
	if q.Past.Given {
		shown.AsOf = words.TimeOrNull(q.Past.At)
	}
	return shown, err
}

// named is the schedule that the path of q names.
func (p *Pages) named(q api.Asked) ([]schedules.Schedule, error) {
	name := q.Request.PathValue("schedule")
	if err := schedule.CheckName(name); err != nil {
		return nil, err
	}
	of, err := schedules.Named(q, q.Tx, q.Past.Or(p.API.Now()), name)
	if err == nil && len(of) == 0 {
		err = errNone(name, q.Past.Given)
	}
	return of, err
}

// errNone says that there is no schedule of this name.
func errNone(name string, past bool) error {
	if past {
		return fault.Exitf(fault.ExitNothing, "there was no schedule %s", name)
	}
	return fault.Exitf(fault.ExitNothing, "there is no schedule %s", name)
}

// one answers with one schedule and its next ticks.
func (p *Pages) one(q api.Asked) ([]any, error) {
	of, err := p.named(q)
	if err != nil {
		return nil, err
	}
	shown, err := shownJSON(q, of[0])
	for _, t := range upcoming(of[0], upcomingShown) {
		shown.Upcoming = append(shown.Upcoming, event.FormatTime(t))
	}
	return []any{shown}, err
}

// ticks answers with what became of the last ticks of a schedule.
func (p *Pages) ticks(q api.Asked) (rows []any, err error) {
	of, err := p.named(q)
	if err != nil {
		return nil, err
	}
	last, err := api.WholeParam(q.Params, "last", ticksShown, 1, 1000)
	if err != nil {
		return nil, err
	}
	found, err := schedules.Ticks{Of: of, At: q.Past.Or(p.API.Now()), Last: last}.Read(q, q.Tx)
	for _, t := range found.By[of[0].Spec.Name] {
		rows = append(rows, print.NewTickJSON(t))
	}
	return rows, err
}
