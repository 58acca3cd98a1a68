package projection

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// lastClaim begins a query for the worker of the last claim of job j. A queued job has no owner in its row.
var lastClaim = event.SQL(`SELECT e.worker FROM events e
    WHERE e.job = j.n AND j.attempt > 0 AND e.seq > 0 AND e.kind IN ({claimed}, {taken_over})`)

// hostIs is the condition on the host of the owner of job j, or of the last one.
var hostIs = `COALESCE(j.worker, (` + lastClaim + ` ORDER BY e.seq DESC LIMIT 1))
    IN (SELECT n FROM workers WHERE host = ?)`

// lastClaimOn are those of some jobs whose last claim up to a pos was on a host.
var lastClaimOn = `SELECT j.n FROM jobs j
WHERE (` + lastClaim + ` AND e.pos <= ? ORDER BY e.seq DESC LIMIT 1) IN (SELECT n FROM workers WHERE host = ?)
    AND j.n IN (`

// claimedOn returns the numbers of those of jobs whose last claim up to the pos until was on host; none
// where host is "".
func claimedOn(ctx context.Context, tx *ledger.Tx, host string, jobs []Job, until int64) (map[int64]bool,
	error) {
	on := make(map[int64]bool)
	if host == "" {
		return on, nil
	}
	var ns []int64
	for _, j := range jobs {
		if j.Attempt > 0 {
			ns = append(ns, j.N)
		}
	}
	for chunk := range table.Chunks(ns) {
		args := append([]any{until, host}, chunk...)
		rows, err := tx.Query(ctx, lastClaimOn+table.Placeholders(len(chunk))+`)`, args...)
		var n int64
		err = table.Each(rows, err, []any{&n}, func() error {
			on[n] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return on, nil
}
