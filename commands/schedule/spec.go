package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode/utf8"

	"jobledger/commands"
	"jobledger/commands/cron"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/schedules"
)

// MaxJitter and MaxWithin bound what a schedule may say.
const (
	MaxJitter = 24 * time.Hour
	MaxWithin = 10 * 366 * 24 * time.Hour
)

// Complete returns spec with the defaults of what it leaves out: the zone UTC, catch-up of the last tick,
// five attempts, and overlap allowed where each missed tick is caught up with, else skipped.
func Complete(spec event.ScheduleSet) event.ScheduleSet {
	if spec.Zone == "" && spec.Every == 0 {
		spec.Zone = "UTC"
	}
	spec.CatchUp = cmp.Or(spec.CatchUp, event.CatchUpLast)
	if spec.Overlap == "" {
		spec.Overlap = event.OverlapSkip
		if spec.CatchUp == event.CatchUpAll {
			spec.Overlap = event.OverlapAllow
		}
	}
	spec.MaxAttempts = cmp.Or(spec.MaxAttempts, projection.DefaultMaxAttempts)
	spec.From = spec.From.UTC().Truncate(time.Second)
	return spec
}

// Check returns a commands.InvalidError for the first field of a complete spec that is outside of what is
// allowed.
func Check(spec event.ScheduleSet) error {
	if err := CheckName(spec.Name); err != nil {
		return err
	}
	job := job(spec, "")
	if err := cmp.Or(job.Check(), commands.ReservedLabel("requires", spec.Requires)); err != nil {
		return err
	}
	bad := func(field, got, allowed string) error {
		return &commands.InvalidError{Field: field, Got: got, Allowed: allowed}
	}
	switch periodic := spec.Every != 0; {
	case periodic == (spec.Cron != ""):
		return bad("cron", fmt.Sprintf("%.80q", spec.Cron), "one of cron and every")
	case periodic && spec.Zone != "":
		return bad("zone", fmt.Sprintf("%.80q", spec.Zone), "only with cron: a period has none")
	case !periodic && !spec.From.IsZero():
		return bad("from", event.FormatTime(spec.From), "only with every")
	case periodic && !spec.From.IsZero() && (spec.From.Year() < 1971 || spec.From.Year() > 9999):
		return bad("from", event.FormatTime(spec.From), "the years 1971 to 9999")
	case len(spec.Payload) > commands.MaxSchedulePayload:
		return bad("payload", fmt.Sprintf("of %d bytes", len(spec.Payload)), "up to 16 KiB")
	case !utf8.ValidString(spec.Payload) || strings.Contains(spec.Payload, "\x00"):
		return bad("payload", "that is not text", "UTF-8: the payload of a schedule is part of its event")
	case spec.Jitter < 0 || spec.Jitter > MaxJitter:
		return bad("jitter", spec.Jitter.String(), "up to 24h")
	case spec.Within < 0 || spec.Within > MaxWithin:
		return bad("within", spec.Within.String(), "up to 10 years")
	}
	switch spec.CatchUp {
	case event.CatchUpLast, event.CatchUpAll, event.CatchUpNone:
	default:
		return bad("catch_up", fmt.Sprintf("%.80q", spec.CatchUp), "last, all, none")
	}
	switch spec.Overlap {
	case event.OverlapSkip, event.OverlapWait, event.OverlapReplace, event.OverlapAllow:
	default:
		return bad("overlap", fmt.Sprintf("%.80q", spec.Overlap), "skip, wait, replace, allow")
	}
	if spec.Every != 0 && spec.From.IsZero() {
		spec.From = time.Unix(0, 0)
	}
	_, err := Times(spec)
	return err
}

// CheckName returns a commands.InvalidError unless name is that of a schedule: the rules are those of queues.
func CheckName(name string) error {
	err := commands.CheckQueue(name)
	if invalid, ok := errors.AsType[*commands.InvalidError](err); ok {
		return &commands.InvalidError{Field: "name", Got: invalid.Got, Allowed: invalid.Allowed}
	}
	return err
}

// Times returns when a complete spec ticks; a commands.InvalidError if its expression, zone or period is
// wrong.
func Times(spec event.ScheduleSet) (times cron.Schedule, err error) {
	field := "cron"
	if spec.Every != 0 {
		field = "every"
		times, err = cron.Every(spec.Every, spec.From)
	} else {
		var zone *time.Location
		if zone, err = cron.Zone(spec.Zone); err != nil {
			field = "zone"
		} else {
			times, err = cron.Parse(spec.Cron, zone)
		}
	}
	if wrong, ok := errors.AsType[*cron.SyntaxError](err); ok {
		return times, &commands.InvalidError{Field: field, Got: fmt.Sprintf("%.80q", wrong.Value),
			Allowed: wrong.Want}
	}
	return times, err
}

// Upcoming returns the next ticks of s, at most so many, and none after until unless that is zero. There are
// none if this process does not know the zone of s.
func Upcoming(s schedules.Schedule, until time.Time, most int) (ticks []time.Time) {
	times, err := Times(s.Spec)
	if err != nil {
		return nil
	}
	for t := s.Next; !t.IsZero() && len(ticks) < most && (until.IsZero() || !t.After(until)); t = times.Next(t) {
		ticks = append(ticks, t)
	}
	return ticks
}

// Key returns the key of the job of a tick.
func Key(name string, tick time.Time) string { return name + "@" + tick.UTC().Format(time.RFC3339) }

// job returns the job that spec describes, without a time.
func job(spec event.ScheduleSet, key string) commands.Enqueue {
	return commands.Enqueue{Queue: spec.Queue, Payload: []byte(spec.Payload), Key: key, Priority: spec.Priority,
		MaxAttempts: spec.MaxAttempts, MaxRuntime: spec.MaxRuntime, Version: spec.Version,
		Requires: spec.Requires, Tags: spec.Tags, Form: spec.Form, Group: spec.Group,
		Backoff: spec.Backoff}
}

// delay returns by how much the job of a tick runs later: the same wherever and whenever it is asked.
func delay(spec event.ScheduleSet, tick time.Time) time.Duration {
	if spec.Jitter <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(Key(spec.Name, tick))) // never fails
	sum := h.Sum64()
	sum ^= sum >> 32 // the last bytes of the text reach the low bits first
	return time.Duration(sum%uint64(spec.Jitter.Microseconds())) * time.Microsecond
}
