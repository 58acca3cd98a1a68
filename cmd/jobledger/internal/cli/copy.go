package cli

import (
	"jobledger/ledger"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

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

// AtCopy returns p with its clock stopped at the moment of which the ledger is a copy; any other ledger
// leaves it as it is.
func (p *Program) AtCopy(c *Context, tx *ledger.Tx) (*Program, error) {
	made, ok, err := status.CopyOf(c.Context, tx)
	if err != nil || !ok {
		return p, err
	}
	return p.At(made.Moment), nil
}
