package projection

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// held searches the live leases, which are few compared with the ended jobs. "> 0" instead of "IS NOT NULL"
// because only a range makes SQLite search the index.
var held = `SELECT ` + table.List + ` FROM jobs j
WHERE j.lease_expires_at > 0 AND j.worker = ? ORDER BY j.lease_expires_at`

// Held returns the jobs that a worker process owns, ordered by the ends of their leases.
func Held(ctx context.Context, tx *ledger.Tx, w event.Worker) ([]Job, error) {
	n, err := tx.Worker(ctx, w)
	if err != nil || n == 0 {
		return nil, err
	}
	return queryJobs(ctx, tx, held, n)
}

const claimsHeld = `SELECT j.n, j.worker, coalesce(j.lease_token, '')
FROM jobs j WHERE j.lease_expires_at > 0`

// HeldWhere returns the jobs with a live claim for which wanted is true of its process and its token, ordered
// by the ends of their leases. It reads whole rows of these only.
func HeldWhere(ctx context.Context, tx *ledger.Tx, wanted func(w event.Worker, token string) bool) (
	[]Job, error) {
	type claim struct {
		job, worker int64
		token       string
	}
	rows, err := tx.QueryState(ctx, claimsHeld)
	claims, err := table.All(rows, err, func(c *claim) []any { return []any{&c.job, &c.worker, &c.token} })
	if err != nil {
		return nil, err
	}
	var numbers []int64
	for _, c := range claims {
		w, err := tx.WorkerOf(ctx, c.worker)
		if err != nil {
			return nil, err
		}
		if wanted(w, c.token) {
			numbers = append(numbers, c.job)
		}
	}
	found, err := GetMany(ctx, tx, numbers)
	return slices.SortedFunc(maps.Values(found), func(a, b Job) int {
		return cmp.Or(a.LeaseUntil.Compare(b.LeaseUntil), cmp.Compare(a.N, b.N))
	}), err
}

// HeldBy returns the jobs that the worker process with this boot holds, with their bodies, the lease that
// ends first in front.
func HeldBy(ctx context.Context, tx *ledger.Tx, boot string) ([]Job, error) {
	held, err := HeldWhere(ctx, tx, func(w event.Worker, _ string) bool { return w.Boot == boot })
	if err != nil {
		return nil, err
	}
	return held, loadAll(ctx, tx, held)
}

// HeldWith returns the jobs that w holds with one of these tokens, with their bodies, in the order of tokens.
func HeldWith(ctx context.Context, tx *ledger.Tx, w event.Worker, tokens []string) ([]Job, error) {
	mine, err := HeldWhere(ctx, tx, func(holder event.Worker, token string) bool {
		return holder == w && slices.Contains(tokens, token)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(mine, func(a, b Job) int {
		return cmp.Compare(slices.Index(tokens, a.Token), slices.Index(tokens, b.Token))
	})
	return mine, loadAll(ctx, tx, mine)
}

func loadAll(ctx context.Context, tx *ledger.Tx, jobs []Job) error {
	for i := range jobs {
		if err := LoadBodies(ctx, tx, &jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

var allHeld = `SELECT ` + table.List + ` FROM jobs j WHERE j.lease_expires_at > 0 ORDER BY j.claimed_at, j.n`

// AllHeld returns the jobs that any worker process owns, the oldest claim first.
func AllHeld(ctx context.Context, tx *ledger.Tx) ([]Job, error) { return queryJobs(ctx, tx, allHeld) }

// Lease is a live claim as a sweeper reads it.
type Lease struct {
	N           int64
	ID          event.JobID
	Token       string
	HeartbeatAt time.Time
	Until       time.Time
}

const expired = `SELECT j.n, j.id, coalesce(j.lease_token, ''), coalesce(j.heartbeat_at, 0),
    j.lease_expires_at
FROM jobs j WHERE j.lease_expires_at <= ? ORDER BY j.lease_expires_at LIMIT ?`

// Expired returns up to limit leases that ended at now or before, in the order of their ends. It only finds
// candidates, and reads no column that may be damaged: one bad row must not keep a sweeper from the others.
func Expired(ctx context.Context, tx *ledger.Tx, now time.Time, limit int) (leases []Lease, err error) {
	rows, err := tx.QueryState(ctx, expired, event.Micros(now), limit)
	var l Lease
	var heartbeat, until int64
	err = table.Each(rows, err, []any{&l.N, &l.ID, &l.Token, &heartbeat, &until}, func() error {
		l.HeartbeatAt, l.Until = event.FromMicros(heartbeat), event.FromMicros(until)
		leases = append(leases, l)
		return nil
	})
	return leases, err
}

// LiveTokens returns the tokens of the live claims of these jobs.
func LiveTokens(ctx context.Context, tx *ledger.Tx, jobs []Job) (map[string]bool, error) {
	live := make(map[string]bool, len(jobs))
	if len(jobs) == 0 {
		return live, nil
	}
	var numbers []any
	for _, j := range jobs {
		numbers = append(numbers, j.N)
	}
	rows, err := tx.Query(ctx, `SELECT lease_token FROM jobs WHERE lease_token IS NOT NULL AND n IN (`+
		table.Placeholders(len(numbers))+`)`, numbers...)
	var token string
	err = table.Each(rows, err, []any{&token}, func() error {
		live[token] = true
		return nil
	})
	return live, err
}
