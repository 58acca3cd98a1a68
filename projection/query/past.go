package query

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/status"
)

// Past is the moment of which a ledger is asked. The zero value is now.
type Past struct {
	projection.Moment
	Given bool   // there is one: the one that was asked, or that of which the ledger is a copy
	Copy  bool   // it is the moment of the copy: nothing is known of what came later
	From  string // the ledger that was copied
}

// ReadPast returns the moment at, the value of the field at. Without one, a ledger that replay made and that
// has not been written to since is looked at as of its own moment, not by today's clock.
func ReadPast(ctx context.Context, tx *ledger.Tx, at *When, now time.Time) (p Past, err error) {
	if at != nil {
		p.Given = true
		p.Moment, err = at.Moment(ctx, tx, "at", now)
		return p, err
	}
	made, ok, err := status.CopyOf(ctx, tx)
	if err != nil || !ok {
		return p, err
	}
	return Past{Moment: made.Moment, Given: true, Copy: true, From: made.From}, nil
}

// Or returns the moment, or that of now.
func (p Past) Or(now time.Time) projection.Moment {
	if p.Given {
		return p.Moment
	}
	return projection.Now(now)
}

// AsOf returns the moment, or nil if it is now.
func (p Past) AsOf() *projection.Moment {
	if !p.Given {
		return nil
	}
	return &p.Moment
}
