package attempts

import (
	"context"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// OwnerAt returns the state of job n at m, and the claim that held it then; the zero Attempt if none did. A
// claim holds a job from its beginning until just before its end, which the Attempt has also where it came
// after m.
func OwnerAt(ctx context.Context, tx *ledger.Tx, n int64, m projection.Moment) (event.State, Attempt, error) {
	var state event.State
	err := table.ScanOne(ctx, tx, stateAt, []any{&state}, n, m.Pos)
	if err != nil || !state.Held() {
		return state, Attempt{}, err
	}
	query, args := claims(`events c`, nil, math.MaxInt64, 0, m.Pos)
	found, err := scanAttempts(ctx, tx, query+lastOfJob, append(args, n)...)
	if err != nil || len(found) == 0 {
		return state, Attempt{}, err
	}
	return state, found[0], nil
}

const (
	stateAt = `SELECT e.to_state FROM events e WHERE e.job = ? AND e.seq > 0 AND e.pos <= ?
ORDER BY e.seq DESC LIMIT 1`
	lastOfJob = ` AND c.job = ? AND c.seq > 0 ORDER BY c.seq DESC LIMIT 1`
)
