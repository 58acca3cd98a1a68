package print

import (
	"fmt"
	"time"

	"jobledger/commands/schedule"
	"jobledger/ledger/event"
)

// PreviewJSON is a time at which a schedule would tick.
type PreviewJSON struct {
	Tick  string `json:"tick" openapi:"format=date-time"` // in UTC
	Local string `json:"local"`                           // in the zone of the schedule
}

// NewPreviewJSON is the tick t of a schedule of spec for programs.
func NewPreviewJSON(spec event.ScheduleSet, t time.Time) PreviewJSON {
	return PreviewJSON{event.FormatTime(t), t.In(ScheduleZone(spec, time.UTC)).Format(time.RFC3339)}
}

// Preview returns at most so many times at which a schedule of a complete spec would tick, from a moment on.
func Preview(spec event.ScheduleSet, from time.Time, most int) (ticks []time.Time, err error) {
	times, err := schedule.Times(spec)
	if err != nil {
		return nil, err
	}
	for t := times.Next(from.Add(-time.Nanosecond)); !t.IsZero() && len(ticks) < most; t = times.Next(t) {
		ticks = append(ticks, t)
	}
	return ticks, nil
}

// maxGap is how many ticks of a year are looked at for one that the clocks move: those of a schedule that
// ticks each hour are at other minutes than the one that it names.
const maxGap = 400

// MovedText says which tick of the year from a moment on comes later than the schedule says, because the
// clocks skip its time; "": none does.
func MovedText(spec event.ScheduleSet, from time.Time) string {
	var hour, minute int
	if n, err := fmt.Sscan(spec.Cron, &minute, &hour); n < 2 || err != nil {
		return ""
	}
	ticks, err := Preview(spec, from, maxGap)
	if err != nil {
		return ""
	}
	for _, t := range ticks {
		local := t.In(ScheduleZone(spec, time.UTC))
		if local.Hour() == hour && local.Minute() == minute {
			continue
		}
		return fmt.Sprintf("On %s the clocks of %s skip %02d:%02d: it ticks at %s.", local.Format("Mon 2 Jan 2006"),
			spec.Zone, hour, minute, local.Format("15:04"))
	}
	return ""
}
