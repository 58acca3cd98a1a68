package status

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Overdue counts leases that ended so long ago that a running sweeper would have reclaimed the jobs.
type Overdue struct {
	Leases int64
	Oldest time.Time // the end of the lease that has been over for longest
}

// overdueNow allows for the grace of a sweeper, which is shorter than one more lease.
const overdueNow = `SELECT count(*), coalesce(min(lease_expires_at), 0) FROM jobs
WHERE lease_expires_at <= ?1 AND 2 * lease_expires_at - coalesce(heartbeat_at, lease_expires_at) <= ?1`

// OverdueLeases counts leases that ended more than their own length and slack before now.
func OverdueLeases(ctx context.Context, tx *ledger.Tx, now time.Time, slack time.Duration) (o Overdue,
	err error) {
	var oldest int64
	err = table.ScanOne(ctx, tx, overdueNow, []any{&o.Leases, &oldest}, event.Micros(now.Add(-slack)))
	o.Oldest = event.FromMicros(oldest)
	return o, err
}
