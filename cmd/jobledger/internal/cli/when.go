package cli

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// heard reads the value of a flag as [when.Spoken] does. A terminal shows, once, how a time without a zone
// was understood.
func (p *Program) heard(flag, s string, next bool) (when.Heard, error) {
	h, err := when.Spoken(s, p.Now(), next)
	switch {
	case err != nil && next:
		return h, fault.WithHint(fault.Usagef("--%s: %q %w", flag, s, err), "%s", when.NextForms)
	case err != nil:
		_, err = when.ReadSpoken(fault.FieldOf(flag), s, p.Now())
	case h.As != "" && p.StderrTerminal && p.said[flag] != h.As:
		if p.said == nil {
			p.said = make(map[string]string)
		}
		p.said[flag] = h.As
		p.Message("%s %s", strings.ReplaceAll(flag, "-", " "), h.As)
	}
	return h, err
}

// NextFlag reads a flag whose value is a time to come; ok is false if it was not given.
func (p *Program) NextFlag(c *Context, name string) (t time.Time, ok bool, err error) {
	if !c.IsSet(name) {
		return t, false, nil
	}
	h, err := p.heard(name, c.String(name), true)
	return h.Time, err == nil, err
}

// HearTimes makes of the times in asked, by the names of their fields, times that have a zone.
func (p *Program) HearTimes(asked url.Values) error {
	for _, field := range []string{"from", "to", "at"} {
		if !asked.Has(field) {
			continue
		}
		h, err := p.heard(fault.FlagOf(field), asked.Get(field), false)
		if err != nil {
			return err
		}
		asked.Set(field, h.Exact())
	}
	return nil
}

// ParseDuration reads the value of a flag as [when.DurationWithin] does.
func ParseDuration(flag, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	return when.ReadDuration("--"+flag, s, lo, hi, allowZero)
}

// AboutAsOf is the paragraph about --as-of in the help of the verbs that have it.
const AboutAsOf = " With --as-of it is what the events up to that moment add up to: a time, such as " +
	"14:30 or 'yesterday 2pm', or a place in the ledger, pos:N. Its present state is shown next to that."

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

// At returns a copy of p whose clock is stopped at m, so that ages and lateness are printed as of m.
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

// Past is [query.Past].
type Past = query.Past

// PastFlag reads --as-of.
func (p *Program) PastFlag(c *Context, tx *ledger.Tx) (past Past, err error) {
	w, given, err := p.WhenFlag(c, "as-of")
	switch {
	case err != nil:
		return past, err
	case given:
		return query.ReadPast(c.Context, tx, &w, p.Now())
	}
	return query.ReadPast(c.Context, tx, nil, p.Now())
}

// ReadAsOf returns what find reads of the moment of --as-of, or of now.
func ReadAsOf[T any](p *Program, c *Context, find func(*ledger.Tx, Past) (T, error)) (found T, past Past,
	err error) {
	err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		if past, err = p.PastFlag(c, tx); err == nil {
			found, err = find(tx, past)
		}
		return err
	})
	return found, past, err
}

// AtCopy returns p with its clock stopped at the moment of the copy, if the ledger is one; otherwise p
// unchanged.
func (p *Program) AtCopy(c *Context, tx *ledger.Tx) (*Program, error) {
	made, ok, err := status.CopyOf(c.Context, tx)
	if err != nil || !ok {
		return p, err
	}
	return p.At(made.Moment), nil
}
