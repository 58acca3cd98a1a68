package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// SkippedText says why ticks of a schedule made no job.
func SkippedText(why string) string {
	switch why {
	case event.SkippedMissed:
		return "a later one was due too"
	case event.SkippedLate:
		return "more than a minute late"
	case event.SkippedTooOld:
		return "older than the schedule permits"
	case event.SkippedTooMany:
		return "beyond what it catches up on"
	case event.SkippedOverlap:
		return "the job before it had not ended"
	case event.SkippedRefused:
		return "its job could not be enqueued"
	}
	return why
}

// WhenText says in words when a schedule ticks; "": it is not one of the common cases, and TimesText says it.
func WhenText(spec event.ScheduleSet) string {
	if spec.Every > 0 {
		return ""
	}
	fields := strings.Fields(map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *",
		"@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}[spec.Cron])
	if len(fields) == 0 {
		fields = strings.Fields(spec.Cron)
	}
	if len(fields) != 5 || fields[3] != "*" {
		return ""
	}
	minute, err := strconv.Atoi(fields[0])
	hour, hourErr := strconv.Atoi(fields[1])
	at := fmt.Sprintf(" at %02d:%02d", hour, minute)
	days := fields[2] == "*"
	day, dayErr := strconv.Atoi(fields[2])
	step, isStep := strings.CutPrefix(fields[0], "*/")
	switch weekdays := fields[4] == "*"; {
	case !weekdays && days && err == nil && hourErr == nil:
		if name := weekday(fields[4]); name != "" {
			return name + at
		}
	case !weekdays:
	case days && fields[1] == "*" && isStep:
		if n, err := strconv.Atoi(step); err == nil && n > 1 && 60%n == 0 {
			return "every " + step + " minutes"
		}
	case days && fields[1] == "*" && fields[0] == "*":
		return "each minute"
	case err != nil:
	case days && fields[1] == "*" && minute == 0:
		return "each hour"
	case days && fields[1] == "*":
		return fmt.Sprintf("each hour at %02d past", minute)
	case hourErr != nil:
	case days:
		return "each day" + at
	case dayErr == nil:
		return fmt.Sprintf("day %d of each month%s", day, at)
	}
	return ""
}

// weekday is the day of the week of a field of cron, in the plural; "": it is more than one.
func weekday(field string) string {
	if field == "1-5" || strings.EqualFold(field, "mon-fri") {
		return "Monday to Friday"
	}
	for day := time.Sunday; day <= time.Saturday; day++ {
		name := day.String()
		if strings.EqualFold(field, name[:3]) || field == strconv.Itoa(int(day)) ||
			day == time.Sunday && field == "7" {
			return name + "s"
		}
	}
	return ""
}

// TimesText says when a schedule ticks.
func TimesText(spec event.ScheduleSet) string {
	if spec.Every > 0 {
		return "every " + Duration(spec.Every)
	}
	return spec.Cron + " " + spec.Zone
}

func (d *description) schedule(body event.Body) {
	named := func(name, reason string) {
		d.add("schedule %s by %s", name, d.event.Actor)
		d.reason(reason)
	}
	next := func(t time.Time) { d.addIf(!t.IsZero(), "next at %s", d.moment(t)) }
	switch b := body.(type) {
	case *event.ScheduleSet:
		named(b.Name, b.Reason)
		d.add("%s into queue %s", TimesText(*b), b.Queue)
		next(b.Next)
	case *event.SchedulePaused:
		named(b.Name, b.Reason)
	case *event.ScheduleResumed:
		named(b.Name, b.Reason)
		next(b.Next)
	case *event.ScheduleRemoved:
		named(b.Name, b.Reason)
	case *event.ScheduleSkipped:
		named(b.Name, SkippedText(b.Why))
		d.add("%s from %s", Count(b.Count, "tick"), d.moment(b.From))
		d.reason(b.Detail)
		next(b.Next)
	}
}
