package cli

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/status"
)

// Past is the moment of which a verb is asked.
type Past struct {
	projection.Moment
	Given bool   // there is one: --as-of, or the moment of which the ledger is a copy
	Copy  bool   // it is the moment of the copy: nothing is known of what came later
	From  string // the ledger that was copied
}

// AsOf returns the moment, or nil where it is now.
func (p *Past) AsOf() *projection.Moment {
	if !p.Given {
		return nil
	}
	return &p.Moment
}

// PastFlag reads --as-of. Without it, a ledger that 'replay' made and that has not been written to since is
// looked at as of its own moment, not by today's clock.
func (p *Program) PastFlag(c *Context, tx *ledger.Tx) (past Past, err error) {
	past.Moment, past.Given, err = p.MomentFlag(c, "as-of", tx)
	if err != nil || past.Given {
		return past, err
	}
	return PastOfCopy(c.Context, tx)
}

// PastOfCopy is the moment of which the ledger is a copy; of any other ledger none is given.
func PastOfCopy(ctx context.Context, tx *ledger.Tx) (past Past, err error) {
	made, ok, err := status.CopyOf(ctx, tx)
	if err != nil || !ok {
		return past, err
	}
	return Past{Moment: made.Moment, Given: true, Copy: true, From: made.From}, nil
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
