package cli

import (
	"net/url"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
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
