package produce

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
)

// scheduleKeys are those of a line, for help.
const scheduleKeys = "name, queue, cron, zone, every, from, jitter, catch_up, within, overlap, priority, " +
	"max_attempts, max_runtime, version, requires, tags, payload, form, group, backoff"

// maxScheduleFile bounds the file: a schedule is a few hundred bytes.
const maxScheduleFile = 8 << 20

// scheduleLine is a line that sets a schedule, or one that was printed: fields that are not part of a spec
// are ignored.
type scheduleLine struct {
	print.SpecJSON
	Paused   json.RawMessage `json:"paused"`
	Next     json.RawMessage `json:"next"`
	LastTick json.RawMessage `json:"last_tick"`
	LastJob  json.RawMessage `json:"last_job"`
	Since    json.RawMessage `json:"since"`
	Actor    json.RawMessage `json:"actor"`
	Reason   json.RawMessage `json:"reason"`
	Upcoming json.RawMessage `json:"upcoming"`
	Command  json.RawMessage `json:"command"` // as the payload has it
	Done     json.RawMessage `json:"done"`
}

// readSchedules returns the schedules of content, a JSON object a line. Empty lines and those that begin with
// # are left out. An error names the line.
func readSchedules(content io.Reader) (specs []event.ScheduleSet, err error) {
	text, err := io.ReadAll(io.LimitReader(content, maxScheduleFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxScheduleFile {
		return nil, cli.Usagef("the file is larger than 8 MiB")
	}
	for i, l := range bytes.Split(text, []byte("\n")) {
		if l = bytes.TrimSpace(l); len(l) == 0 || l[0] == '#' {
			continue
		}
		spec, err := readSchedule(l)
		if err == nil {
			err = schedule.Check(schedule.Complete(spec))
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func readSchedule(text []byte) (spec event.ScheduleSet, err error) {
	if !utf8.Valid(text) {
		return spec, cli.Usagef("not UTF-8")
	}
	var l scheduleLine
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return spec, cli.Usagef("not a schedule: %w; the keys are %s", err, scheduleKeys)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return spec, cli.Usagef("text after the JSON object; a line holds one")
	}
	return l.Spec()
}
