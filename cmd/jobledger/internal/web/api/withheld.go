package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger/event"
)

// MaySeeBodies reports whether the caller of ctx may see payloads and results.
func MaySeeBodies(ctx context.Context) bool { return door.CallerOf(ctx).Has(door.Bodies) }

// bodyFields are the fields of a job that have its payload and its result.
var bodyFields = []string{"payload", "payload_base64", "result", "result_base64"}

// withhold removes what the caller of ctx may not see from a job, if that is what line is: a caller without
// the right to payloads gets one that does not have these fields.
func (res Resource) withhold(ctx context.Context, line []byte) ([]byte, error) {
	switch {
	case MaySeeBodies(ctx):
		return line, nil
	case res.form == one && res.verb == "show":
		short, err := without(line, bodyFields...)
		return append(short, '\n'), err
	case res.form == events:
		return WithholdOfEvent(line)
	}
	return line, nil
}

// scheduleSet is in the line of each event that sets a schedule, the only one that has a payload: that of the
// jobs to come.
var scheduleSet = []byte(`"kind":"` + event.KindScheduleSet.String() + `"`)

// WithholdOfEvent is line, an event, without a payload.
func WithholdOfEvent(line []byte) ([]byte, error) {
	if !bytes.Contains(line, scheduleSet) {
		return line, nil
	}
	var e struct {
		Kind string
		Data json.RawMessage
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	if e.Kind != event.KindScheduleSet.String() {
		return line, nil
	}
	data, err := without(e.Data, "payload")
	return bytes.Replace(line, e.Data, data, 1), err
}

// lineFor is the line of an event as the caller of ctx may see it.
func lineFor(ctx context.Context, e view.Sent) ([]byte, error) {
	if e.Kind() != event.KindScheduleSet || MaySeeBodies(ctx) {
		return e.Line, nil
	}
	return WithholdOfEvent(e.Line)
}

// without returns the object that line is without the fields of these names. The others stay
// as they are, to the byte.
func without(line []byte, names ...string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	out := []byte("{")
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		if slices.Contains(names, name.(string)) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, quoted...), ':'), value...)
	}
	return append(out, '}'), nil
}
