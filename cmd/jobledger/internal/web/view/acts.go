package view

import (
	"context"
	"time"

	"jobledger/cmd/jobledger/internal/web/history"
	"jobledger/ledger"
)

// Limits of what the overview lists.
const (
	actsShown = 8
	actsBack  = 24 * time.Hour
)

// operatorActs returns what operators did in the day before now, up to the position until, the newest first.
func operatorActs(ctx context.Context, tx *ledger.Tx, until int64, now time.Time) (acts history.Acts,
	err error) {
	if until == 0 {
		return acts, nil
	}
	after, err := tx.PosAt(ctx, now.Add(-actsBack))
	if err != nil {
		return acts, err
	}
	return history.OperatorActs(ctx, tx, ledger.Filter{After: after, Until: until}, actsShown)
}
