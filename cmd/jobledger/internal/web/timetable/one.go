package timetable

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// oneView is what the page of a schedule shows.
type oneView struct {
	frame.Frame
	rowView
	Pairs    [][2]string
	Upcoming []momentView
	Ticks    []tickView
	Changes  []changeView
	More     int        // changes that are left out
	Unknown  momentView // ticks before it that made no job are not shown; zero: all are
	Left     bool
	Acts     []actView
}

// tickView is what became of a tick.
type tickView struct {
	At, UTC string
	Pos     int64
	Outcome string // one of print.TickOutcomes
	Path    string // its shape
	Text    string
	Job     event.JobID
	Why     string
}

// changeView is what was done to the schedule.
type changeView struct {
	Pos          int64
	At, UTC      string
	Kind, By     string
	Reason, What string
}

// maxChanges is how many changes the page shows, the last ones.
const maxChanges = 50

// onePage shows one schedule.
func (p *Pages) onePage(w http.ResponseWriter, r *http.Request) error {
	query, err := api.QueryOf(r)
	if err != nil {
		return err
	}
	name := r.PathValue("schedule")
	if err := schedule.CheckName(name); err != nil {
		return err
	}
	var shown oneView
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		shown = oneView{}
		m, err := p.Begin(&shown.Frame, r, query, tx, "Schedule "+name)
		if err != nil {
			return err
		}
		of, err := schedules.Named(r.Context(), tx, m.Or(p.Now()), name)
		if err != nil {
			return err
		}
		if len(of) == 0 {
			return errNone(name, m.Given)
		}
		rows, found, err := p.rows(r, tx, of, m, &shown.Frame)
		if err != nil {
			return err
		}
		shown.rowView, shown.Left = rows[0], found.Left
		return shown.read(r, tx, of[0], found, p.Clock(m).At, m.Or(p.Now()).Pos)
	})
	if err != nil {
		return err
	}
	if shown.Live = shown.Ago == ""; shown.At == "" && door.CallerOf(r.Context()).Has(door.Operate) {
		shown.addActs(query.Get("act"))
	}
	shown.API = "/api/v1/schedules/" + name
	shown.Command = frame.CommandOf([]string{"schedule", "show"}, name)
	if shown.At != "" {
		shown.Command = frame.CommandOf([]string{"schedule", "ticks", "--as-of=" + shown.At}, name)
	}
	return p.Render(w, "schedule", shown)
}

// read adds what the page has of s besides its row.
func (v *oneView) read(r *http.Request, tx *ledger.Tx, s schedules.Schedule, found schedules.TickList,
	now time.Time, pos int64) error {
	ctx, zone := r.Context(), now.Location()
	seen := s
	if !api.MaySeeBodies(ctx) {
		seen.Spec.Payload = ""
	}
	for _, pair := range print.Schedule(seen, "", nil, now) {
		if pair[0] != "schedule" && pair[0] != "last tick" {
			v.Pairs = append(v.Pairs, pair)
		}
	}
	for _, t := range upcoming(s, upcomingShown) {
		v.Upcoming = append(v.Upcoming, momentOf(t, now))
	}
	v.Unknown = momentOf(found.Since, now)
	for _, t := range found.By[s.Spec.Name] {
		outcome := print.TickOutcome(t)
		one := tickView{At: words.Time(t.At.In(zone)), Pos: t.Pos, Outcome: outcome, Path: barShapes[outcome],
			Text: print.TickText(t), Why: print.TickWhy(t, zone)}
		if t.Why == "" {
			one.Job = t.Job.ID
		}
		v.Ticks = append(v.Ticks, one)
	}
	changes, err := schedules.Changes(ctx, tx, s.Spec.Name, pos)
	if err != nil {
		return err
	}
	for i, e := range changes {
		if len(v.Changes) == maxChanges {
			v.More = len(changes) - maxChanges
			break
		}
		var before *event.ScheduleSet
		for _, earlier := range changes[i+1:] {
			if earlier.Kind() == event.KindScheduleRemoved {
				break
			}
			if set, ok := api.Shown(ctx, earlier).Body.(*event.ScheduleSet); ok {
				before = set
				break
			}
		}
		v.Changes = append(v.Changes, changeOf(api.Shown(ctx, e), before, zone))
	}
	return nil
}

// changeOf is e on the page; before is what set the schedule before it, nil: nothing did.
func changeOf(e event.Event, before *event.ScheduleSet, zone *time.Location) changeView {
	verb, _ := strings.CutPrefix(e.Kind().String(), "schedule_")
	v := changeView{Pos: e.Pos, At: words.Time(e.At.In(zone)), Kind: verb, By: e.Actor}
	switch b := e.Body.(type) {
	case *event.ScheduleSet:
		v.Reason = b.Reason
		if before != nil {
			v.What = strings.Join(differences(*before, *b), "; ")
		} else {
			v.What = words.TimesText(*b) + " into queue " + b.Queue
		}
	case *event.SchedulePaused:
		v.Reason = b.Reason
	case *event.ScheduleResumed:
		v.Reason = b.Reason
	case *event.ScheduleRemoved:
		v.Reason = b.Reason
	}
	return v
}

// differences are the settings that differ, each as "cron: 0 * * * * → 5 * * * *".
func differences(before, after event.ScheduleSet) (all []string) {
	fields := func(spec event.ScheduleSet) (m map[string]any) {
		text, _ := json.Marshal(print.NewScheduleJSON(schedules.Schedule{Spec: spec}, "").SpecJSON)
		_ = json.Unmarshal(text, &m) // it was made just now
		return m
	}
	text := func(v any) string {
		if v == nil {
			return "none"
		}
		return fmt.Sprint(v)
	}
	was, is := fields(before), fields(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := text(was[name]), text(is[name]); a != b {
			all = append(all, name+": "+a+" → "+b)
		}
	}
	return all
}
