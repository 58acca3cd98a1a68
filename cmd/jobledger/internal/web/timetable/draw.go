package timetable

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/schedule"
	"jobledger/projection/schedules"
)

// barStep is how far the ticks of a picture are apart, in its own units.
const barStep = 8

// barShapes are what became of a tick, as paths: they differ without colour too.
var barShapes = map[string]string{"at_once": "M0 1h6v14h-6Z", "retried": "M0 1h6v6h-6ZM0 9h6v6h-6Z",
	"failed": "M0 1L6 15M6 1L0 15", "cancelled": "M0 8h6", "running": "M0 8h6v7h-6Z", "waiting": "M0 12h6v3h-6Z",
	"skipped": "M.5 1.5h5v13h-5Z"}

// barView is a tick in the picture of the last ones.
type barView struct {
	X                    int
	Outcome, Path, Title string
}

// barsView is that picture.
type barsView struct {
	Width int
	About string // in words
	Bars  []barView
}

// newBars draws ticks, the newest first.
func newBars(ticks []schedules.Tick, zone *time.Location) *barsView {
	if len(ticks) == 0 {
		return nil
	}
	v := &barsView{Width: len(ticks) * barStep}
	counts := make(map[string]int64)
	for i, t := range ticks {
		outcome := print.TickOutcome(t)
		counts[outcome]++
		title := words.Time(t.At.In(zone)) + ": " + print.TickText(t)
		if why := print.TickWhy(t, zone); why != "" {
			title += ": " + why
		}
		v.Bars = append(v.Bars, barView{X: v.Width - (i+1)*barStep, Outcome: outcome, Path: barShapes[outcome],
			Title: title})
	}
	var parts []string
	for _, o := range print.TickOutcomes {
		if n := counts[o[0]]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o[1]))
		}
	}
	v.About = "The last " + words.Count(int64(len(ticks)), "tick") + ": " + strings.Join(parts, ", ")
	return v
}

// legend has each shape and what it means.
func legend() (all []barView) {
	for _, o := range print.TickOutcomes {
		all = append(all, barView{Outcome: o[0], Path: barShapes[o[0]], Title: o[1]})
	}
	return all
}

// The axis of the ticks that come next.
const (
	ahead     = 6 * time.Hour
	maxAhead  = 400 // ticks of one schedule: where there are more, they are a line
	hourLabel = 2   // each so many hours
)

// aheadView are the next ticks of all schedules on one axis, so that those at the same time are seen.
type aheadView struct {
	Rows  []aheadRow
	Hours []hourView
}

// aheadRow are those of one schedule.
type aheadRow struct {
	Name, Href string
	About      string    // in words
	At         []float64 // percent of the axis
	Line       bool      // there are too many to be dots
}

// hourView is a full hour on the axis.
type hourView struct {
	At   float64
	Text string // "": it has none
}

// newAhead draws the ticks of the schedules after now; nil: there are none.
func newAhead(all []schedules.Schedule, now time.Time, href func(string) string) *aheadView {
	v := new(aheadView)
	share := func(t time.Time) float64 {
		return float64(max(0, t.Sub(now)).Milliseconds()*1000/ahead.Milliseconds()) / 10
	}
	for _, s := range all {
		ticks := schedule.Upcoming(s, now.Add(ahead), maxAhead+1)
		if len(ticks) == 0 {
			continue
		}
		first := words.Time(ticks[0].In(now.Location()))
		row := aheadRow{Name: s.Spec.Name, Href: href(s.Spec.Name), Line: len(ticks) > maxAhead,
			About: words.Count(int64(len(ticks)), "tick") + ", the first at " + first}
		if row.Line {
			row.About = fmt.Sprintf("more than %d ticks", maxAhead)
		} else {
			for _, t := range ticks {
				row.At = append(row.At, share(t))
			}
		}
		v.Rows = append(v.Rows, row)
	}
	if v.Rows == nil {
		return nil
	}
	for t := nextHour(now); !t.After(now.Add(ahead)); t = nextHour(t) {
		hour := hourView{At: share(t)}
		if t.Hour()%hourLabel == 0 && hour.At < 96 {
			hour.Text = t.Format("15:04")
		}
		v.Hours = append(v.Hours, hour)
	}
	return v
}

// nextHour is the first full hour on the clock of t's zone after t.
func nextHour(t time.Time) time.Time {
	_, offset := t.Zone()
	past := (t.Unix() + int64(offset)) % 3600
	return t.Truncate(time.Second).Add(time.Duration(3600-past) * time.Second)
}

// upcoming are the next ticks of s, at most so many.
func upcoming(s schedules.Schedule, most int) []time.Time {
	return schedule.Upcoming(s, time.Time{}, most)
}
