package cli

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
)

// AboutAsOf is the paragraph about --as-of in the help of the verbs that have it.
const AboutAsOf = " With --as-of it is what the events up to that moment add up to: a time, such as " +
	"14:30 or 'yesterday 2pm', or a place in the ledger, pos:N. What has become of it is shown next to that."

// AsOfFlag returns the flag --as-of.
func AsOfFlag() Flag {
	return &StringFlag{Name: "as-of", Usage: "as it was at `TIME`"}
}

// WideFlag is --wide, for a table that drops columns on a narrow terminal.
func WideFlag() Flag {
	return &BoolFlag{Name: "wide", Usage: "every column, even if a line is wider than the terminal"}
}

// MomentFlag reads a flag whose value is a moment of the past; given is false without the flag.
func (p *Program) MomentFlag(c *Context, name string, tx *ledger.Tx) (m projection.Moment, given bool,
	err error) {
	w, given, err := p.WhenFlag(c, name)
	if err != nil || !given {
		return m, given, err
	}
	m, err = w.Moment(c.Context, tx, fault.FieldOf(name), p.Now())
	return m, true, err
}

// At returns a copy of p whose clock is stopped at m, so that ages and lateness are printed as of then.
func (p *Program) At(m projection.Moment) *Program {
	then := *p
	zone := p.Now().Location()
	then.Now = func() time.Time { return m.At.In(zone) }
	return &then
}

// Moment is a past moment as a line for people: when, at which event, how long ago.
func (p *Program) Moment(m projection.Moment) string {
	return fmt.Sprintf("as of %s (pos %d), %s", words.Time(p.Local(m.At)), m.Pos, words.Age(m.At, p.Now()))
}

// FormatMillis is [words.Millis] in the zone in which times are shown.
func (p *Program) FormatMillis(t time.Time) string { return words.Millis(p.Local(t)) }
