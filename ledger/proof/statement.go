package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Event has the fields of a leaf's event that a verifier judges. The names are those of the leaf.
type Event struct {
	Pos    int64  `json:"pos"`
	Job    string `json:"job"` // "": it concerns no job
	Seq    int64  `json:"seq"` // place within the job; 0 for what changes no state
	Kind   string `json:"kind"`
	At     string `json:"at"`
	Actor  string `json:"actor"`
	Worker string `json:"worker"`
	To     string `json:"to_state"`
}

// Statement is what the events of a proof say.
type Statement struct {
	Events []Event
	Job    string // that all of them concern; "": none
	State  string // of the job after them; "" unless Whole
	Seq    int64  // of the last one that has a seq
	Whole  bool   // the events with seq 1 to Seq of the job are all there
	Ended  bool   // Whole, and the job has ended with them
}

// Statement reads the events of p. It is an error if an event is not at the position that its index says. It
// is also an error if there are several events, and they are not those of one job with seq 1, 2, 3… without
// a gap: then an event was taken out of the proof. Errors wrap [ErrInvalid]. That the events are in the
// tree, [Proof.Check] says.
func (p *Proof) Statement() (s Statement, err error) {
	first := int64(0)
	for i, entry := range p.Entries {
		e, err := readEvent(entry.Leaf)
		if err == nil && e.Pos != entry.Index+1 {
			err = fmt.Errorf("it says pos %d", e.Pos)
		}
		if err != nil {
			return s, fmt.Errorf("%w: event %d: %w", ErrInvalid, entry.Index+1, err)
		}
		switch {
		case i == 0:
			s.Job, first, s.Seq = e.Job, e.Seq, e.Seq
		case e.Job != s.Job || e.Job == "":
			return s, fmt.Errorf("%w: event %d is not of the same job as the ones before", ErrInvalid, e.Pos)
		case first != 1 || e.Seq != 0 && e.Seq != s.Seq+1:
			return s, fmt.Errorf("%w: event %d has seq %d after seq %d of the job: an event is missing", ErrInvalid,
				e.Pos, e.Seq, s.Seq)
		case e.Seq != 0:
			s.Seq = e.Seq
		}
		if e.To != "" {
			s.State = e.To
		}
		s.Events = append(s.Events, e)
	}
	if s.Whole = s.Job != "" && first == 1; !s.Whole {
		s.State = ""
	}
	s.Ended = s.State == "succeeded" || s.State == "failed" || s.State == "cancelled"
	return s, nil
}

// readEvent reads a leaf. Fields that it does not know are left alone, since a newer program may have written
// them. A field that is given twice is an error, because readers would not agree on its value.
func readEvent(leaf []byte) (e Event, err error) {
	into := map[string]any{"pos": &e.Pos, "job": &e.Job, "seq": &e.Seq, "kind": &e.Kind, "at": &e.At,
		"actor": &e.Actor, "worker": &e.Worker, "to_state": &e.To}
	seen := make(map[string]bool)
	d := json.NewDecoder(bytes.NewReader(leaf))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return e, errors.New("its line is not a JSON object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return e, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return e, err
		}
		key, _ := name.(string)
		if seen[key] {
			return e, fmt.Errorf("a duplicate field %q", key)
		}
		seen[key] = true
		if field := into[key]; field != nil {
			if err := json.Unmarshal(value, field); err != nil {
				return e, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return e, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return e, errors.New("text after its line")
	}
	for key := range into {
		if !seen[key] {
			return e, fmt.Errorf("%s is missing", key)
		}
	}
	return e, nil
}
