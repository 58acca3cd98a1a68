package segment

import (
	"crypto/sha256"
	"fmt"
	"io"
)

// Check reads the segment file of r from its begin to its end and returns what it holds, and its parts.
// Anything that [Writer] would not write is an error that wraps ErrDamaged. The caller compares the facts
// with those that it knows: the file's SHA-256, and the blocks of the ledger (see [Facts.CheckBlocks]).
func Check(file io.Reader, r Range) (Facts, *Parts, error) {
	if err := r.Check(); err != nil {
		return Facts{}, nil, err
	}
	c, sum := newCollector(r), sha256.New()
	c.summary = newSummary()
	for m, err := range Members(io.TeeReader(file, sum)) {
		if err != nil {
			return Facts{}, nil, err
		}
		if err := c.member(m); err != nil {
			return Facts{}, nil, fmt.Errorf("%w: the member at offset %d: %w", ErrDamaged, m.Offset, err)
		}
		c.facts.Bytes = m.Offset + m.Length
	}
	if err := c.complete(); err != nil {
		return Facts{}, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	sum.Sum(c.facts.SHA256[:0])
	return c.facts, c.parts(), nil
}

// member takes a member that was read.
func (c *collector) member(m *Member) error {
	last := m.Events[len(m.Events)-1].Pos
	first := m.Events[0].Pos
	full := len(m.Events) == MemberLines
	switch {
	case first > c.facts.Lo && !full:
		return fmt.Errorf("segment: %d events instead of %d", len(m.Events), MemberLines)
	case first <= c.facts.Lo && last > c.facts.Lo:
		return fmt.Errorf("segment: carried-in events and others in one member")
	case first <= c.facts.Lo && c.facts.Carried%MemberLines != 0:
		return fmt.Errorf("segment: a member of carried-in events before this one is not full")
	}
	for i := range m.Events {
		// The line feed behind a line is part of the text that it was cut from.
		if err := c.line(&m.Events[i], m.Lines[i][:len(m.Lines[i])+1]); err != nil {
			return err
		}
	}
	return c.nextMember(m.Offset)
}
