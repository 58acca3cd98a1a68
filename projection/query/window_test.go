package query_test

import (
	"errors"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/projection/query"
)

// Both ends of a window are included, by time and by position. What cannot be asked is refused, with the
// field that is wrong.
func TestWindowRefuses(t *testing.T) {
	s := commandstest.New(t)
	begin := s.Now
	for range 5 { // events 1 to 5, at begin, +1 s, …
		if _, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
			t.Fatal(err)
		}
		s.Now = s.Now.Add(time.Second)
	}
	const wrong, future, beyond = "later than the end of the window", "2026-01-02 03:14:05+00:00 is yet to come",
		"the ledger ends at pos:5"
	nanos := func(d time.Duration) *query.When { return query.At(begin.Add(d)) }
	at := func(seconds int) *query.When { return query.At(begin.Add(time.Duration(seconds) * time.Second)) }
	for name, tt := range map[string]struct {
		w        query.Window
		from, to int64 // the first and the last event
		field    string
		reason   string
	}{
		"all":                {w: query.Window{}, from: 1, to: 5},
		"by time":            {w: query.Window{From: at(1), To: at(3)}, from: 2, to: 4},
		"by pos":             {w: query.Window{From: query.AtPos(2), To: query.AtPos(4)}, from: 2, to: 4},
		"from pos 0":         {w: query.Window{From: query.AtPos(0)}, from: 1, to: 5},
		"of the past":        {w: query.Window{At: at(2)}, from: 1, to: 3},
		"to after the past":  {w: query.Window{To: at(4), At: query.AtPos(3)}, from: 1, to: 3},
		"to before the past": {w: query.Window{To: at(1), At: query.AtPos(3)}, from: 1, to: 2},
		"between two":        {w: query.Window{From: nanos(1), To: nanos(2)}, from: 2, to: 1},
		"the wrong order":    {w: query.Window{From: at(3), To: at(1)}, field: "from", reason: wrong},
		"the wrong events": {w: query.Window{From: query.AtPos(4), To: query.AtPos(3)}, field: "from",
			reason: wrong},
		"after the past":     {w: query.Window{From: at(3), At: at(1)}, field: "from", reason: wrong},
		"a future end":       {w: query.Window{To: at(600)}, field: "to", reason: future},
		"a future beginning": {w: query.Window{From: at(600)}, field: "from", reason: future},
		"a future moment":    {w: query.Window{At: at(600)}, field: "at", reason: future},
		"an end beyond":      {w: query.Window{To: query.AtPos(6)}, field: "to", reason: beyond},
		"a beginning beyond": {w: query.Window{From: query.AtPos(6)}, field: "from", reason: beyond},
	} {
		err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			got, err := tt.w.Resolve(t.Context(), tx, s.Now)
			if err == nil && tt.field == "" && (got.From.Pos+1 != tt.from || got.To.Pos != tt.to) {
				t.Errorf("%s: events %d to %d, want %d to %d", name, got.From.Pos+1, got.To.Pos, tt.from, tt.to)
			}
			return err
		})
		in, _ := errors.AsType[*query.InputError](err)
		switch {
		case tt.field == "" && err != nil, tt.field != "" && in == nil:
			t.Errorf("%s: %v", name, err)
		case in != nil && (in.Field != tt.field || in.Reason != tt.reason):
			t.Errorf("%s: %s: %s, want %s: %s", name, in.Field, in.Reason, tt.field, tt.reason)
		}
	}
}
