package print

import (
	"encoding/json"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
)

// Spec is the schedule that s says.
func (s SpecJSON) Spec() (spec event.ScheduleSet, err error) {
	spec = event.ScheduleSet{Name: s.Name, Queue: s.Queue, Cron: s.Cron, Zone: s.Zone, CatchUp: s.CatchUp,
		Overlap: s.Overlap, Priority: s.Priority, MaxAttempts: s.MaxAttempts, Version: s.Version,
		Requires: s.Requires, Tags: s.Tags, Payload: string(s.Payload), Form: s.Form, Group: s.Group}
	if len(s.Payload) > 0 && s.Payload[0] == '"' {
		if err := json.Unmarshal(s.Payload, &spec.Payload); err != nil {
			return spec, fault.Usagef("payload: %w", err)
		}
	}
	for _, d := range []struct {
		key, text string
		into      *time.Duration
		most      time.Duration
	}{
		{"every", s.Every, &spec.Every, schedule.MaxWithin},
		{"jitter", s.Jitter, &spec.Jitter, schedule.MaxJitter},
		{"within", s.Within, &spec.Within, schedule.MaxWithin},
		{"max_runtime", s.MaxRuntime, &spec.MaxRuntime, commands.MaxRunTime},
	} {
		if d.text == "" {
			continue
		}
		if *d.into, err = time.ParseDuration(d.text); err != nil || *d.into < 0 || *d.into > d.most {
			if *d.into, err = when.ReadDuration(d.key, d.text, 0, d.most, true); err != nil {
				return spec, wire.InField(d.key, err)
			}
		}
	}
	if s.Backoff != "" {
		if spec.Backoff, err = when.ParseBackoff(s.Backoff); err != nil {
			return spec, wire.InField("backoff", fault.Usagef("backoff: %w", err))
		}
	}
	if s.From != "" {
		if spec.From, err = time.Parse(time.RFC3339, s.From); err != nil {
			return spec, wire.InField("from", fault.Usagef("from: %.60q is not a time such as 2026-05-04T15:04:05Z",
				s.From))
		}
	}
	return spec, nil
}
