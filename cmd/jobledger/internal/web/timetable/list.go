package timetable

import (
	"net/http"
	"net/url"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/schedules"
	"jobledger/projection/verdict"
)

// listView is what the page of all schedules shows.
type listView struct {
	frame.Frame
	Rows     []rowView
	Paused   int
	Operates bool
	Legend   []barView
	Ahead    *aheadView
	Since    momentView // ticks before it that made no job are not shown; zero: all are
	Left     bool
}

// momentView is a moment as a page shows it.
type momentView struct {
	Text string // "": there is none
	UTC  string
	In   string // from now on; ""
}

// rowView is a schedule on a page.
type rowView struct {
	Name, Href      string
	Queue, QueueRef string
	What            string // that its jobs are; "": nothing says it, or the caller may not see it
	When, Cron      string // in words, which may be "", and as it was set
	Paused          bool
	Since           momentView // it is paused
	Actor, Reason   string
	Next            momentView
	Last            momentView
	LastJob         string // the address of the job of the last tick; ""
	LastState       string
	Bars            *barsView
	Wrong           *wrongView // nil: nothing
}

// wrongView is what the verdict says of a schedule.
type wrongView struct{ Level, Text, Code string }

// momentOf is t as the page of now shows it: of the same day, the time of day.
func momentOf(t, now time.Time) (v momentView) {
	if t.IsZero() {
		return v
	}
	t = t.In(now.Location())
	form := "15:04"
	if t.Second() != 0 {
		form = "15:04:05"
	}
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		form = "Mon 2 Jan " + form
	}
	if t.Year() != now.Year() {
		form = "2006-01-02 15:04:05-07:00"
	}
	v = momentView{Text: t.Format(form), UTC: frame.Stamp(t)}
	if t.After(now) {
		v.In = words.Roughly(t.Sub(now))
	}
	return v
}

// listPage shows all schedules.
func (p *Pages) listPage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	shown := listView{Operates: door.CallerOf(r.Context()).Has(door.Operate), Legend: legend()}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		m, err := p.Begin(&shown.Frame, r, query, tx, "Schedules")
		if err != nil {
			return err
		}
		at := m.Or(p.Now())
		all, err := schedules.At(r.Context(), tx, at.Pos)
		if err != nil {
			return err
		}
		rows, found, err := p.rows(r, tx, all, m, &shown.Frame)
		if err != nil {
			return err
		}
		now := p.Clock(m).At
		shown.Rows, shown.Left, shown.Since, shown.Paused = rows, found.Left, momentOf(found.Since, now), 0
		for _, row := range rows {
			if row.Paused {
				shown.Paused++
			}
		}
		shown.Ahead = newAhead(all, now, shown.ScheduleAddress)
		return nil
	})
	if err != nil {
		return err
	}
	shown.Live = shown.Ago == ""
	shown.API = "/api/v1/schedules"
	shown.Command = "jobledger schedule list"
	if shown.At != "" {
		shown.Command += " --as-of " + frame.Quoted(shown.At)
	}
	return p.Render(w, "schedules", shown)
}

// rows are the schedules as pages show them at m, with what became of their last ticks.
func (p *Pages) rows(r *http.Request, tx *ledger.Tx, of []schedules.Schedule, m frame.Moment,
	f *frame.Frame) (rows []rowView, found schedules.TickList, err error) {
	now := p.Clock(m).At
	found, err = schedules.Ticks{Of: of, At: m.Or(p.Now()), Last: ticksShown}.Read(r.Context(), tx)
	if err != nil {
		return nil, found, err
	}
	wrong := make(map[string]*wrongView)
	if !m.Given {
		figures, at, err := p.Figures.Read(r.Context(), tx, p.Now())
		if err != nil {
			return nil, found, err
		}
		for _, one := range figures.Problems {
			if one.Code == verdict.Schedule {
				c := state.Say(one, at.In(now.Location()))
				wrong[one.Schedule.Spec.Name] = &wrongView{frame.LevelNames[c.Level], c.Text, c.Code}
			}
		}
	}
	for _, s := range of {
		row := rowView{Name: s.Spec.Name, Href: f.ScheduleAddress(s.Spec.Name), Queue: s.Spec.Queue,
			QueueRef: "/queues/" + url.PathEscape(s.Spec.Queue) + f.AtQuery(), Paused: s.Paused,
			When: words.WhenText(s.Spec), Cron: words.TimesText(s.Spec), Wrong: wrong[s.Spec.Name],
			Next: momentOf(s.Next, now)}
		if api.MaySeeBodies(r.Context()) {
			row.What = state.WhatTicks(s.Spec)
		}
		if s.Paused {
			row.Since, row.Actor, row.Reason = momentOf(s.Since, now), s.Actor, s.Reason
		}
		ticks := found.By[s.Spec.Name]
		row.Bars = newBars(ticks, now.Location())
		for _, t := range ticks {
			if t.Why != "" {
				continue
			}
			row.Last, row.LastState = momentOf(t.At, now), t.Job.State.String()
			row.LastJob = "/jobs/" + string(t.Job.ID) + f.AtQuery()
			break
		}
		rows = append(rows, row)
	}
	return rows, found, nil
}
