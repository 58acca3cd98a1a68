package group

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Head is the entry of a group in one lane: a row of group_heads. Times are microseconds.
type Head struct {
	Queue, Group string
	Base         string // of the lane
	RunAt        int64  // of the first job
	Served              // the last claim from here since there has been a queued job
	Eligible     int64  // when the first job may start; meaningless while Blocked
	Blocked      bool   // the group has all the live claims that it may have
}

// Served is a claim.
type Served struct {
	Pos int64 // of its event; 0: none
	At  int64
}

// fill computes Eligible; next is when the rate of the group lets it start a job.
func (h *Head) fill(blocked bool, next int64) {
	h.Blocked, h.Eligible = blocked, max(h.RunAt, h.At, next)
	if blocked {
		h.Eligible = 0
	}
}

// Fill returns h with Eligible as it follows from the other fields.
func (h Head) Fill(blocked bool, next int64) Head {
	h.fill(blocked, next)
	return h
}

var put = ledger.NewUpsert("group_heads", "queue, grp, lane",
	ledger.ColumnTypes{"grp": ledger.TextColumn, "lane": ledger.TextColumn},
	"queue", "grp", "lane", "run_at", "served_at", "served", "eligible_at")

// Put writes the row of h.
func Put(ctx context.Context, tx *ledger.Tx, h Head) error {
	queue, err := tx.Name(ctx, h.Queue)
	if err != nil {
		return err
	}
	var eligible any
	if !h.Blocked {
		eligible = h.Eligible
	}
	return tx.Put(put, queue, h.Group, h.Base, h.RunAt, h.At, h.Pos, eligible)
}

// Delete removes the row of h.
func Delete(ctx context.Context, tx *ledger.Tx, h Head) error {
	queue, err := tx.Name(ctx, h.Queue)
	if err == nil {
		_, err = tx.Exec(`DELETE FROM group_heads WHERE queue = ? AND grp = ? AND lane = ?`, queue, h.Group, h.Base)
	}
	return err
}

// DeleteAny removes the rows of h's group and lane, whichever queue they name.
func DeleteAny(tx *ledger.Tx, h Head) error {
	_, err := tx.Exec(`DELETE FROM group_heads WHERE grp = ? AND lane = ?`, h.Group, h.Base)
	return err
}

const selectHeads = `SELECT coalesce(n.name, ''), h.grp, h.lane, h.run_at, h.served_at, h.served,
    h.eligible_at
FROM group_heads h LEFT JOIN names n ON n.n = h.queue `

// headsOf returns the rows of one group of a queue.
func headsOf(ctx context.Context, tx *ledger.Tx, queue, name string) ([]Head, error) {
	const ofGroup = `WHERE h.queue = (SELECT n FROM names WHERE name = ?) AND h.grp = ?`
	return heads(ctx, tx, selectHeads+ofGroup, queue, name)
}

// All returns every row, in the order of queues, groups and lanes.
func All(ctx context.Context, tx *ledger.Tx) ([]Head, error) {
	return heads(ctx, tx, selectHeads+`ORDER BY h.queue, h.grp, h.lane`)
}

func heads(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Head, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	var h Head
	var eligible sql.NullInt64
	into := []any{&h.Queue, &h.Group, &h.Base, &h.RunAt, &h.At, &h.Pos, &eligible}
	err = table.Each(rows, err, into, func() error {
		h.Eligible, h.Blocked = eligible.Int64, !eligible.Valid
		found = append(found, h)
		return nil
	})
	return found, err
}

const firstInLane = `SELECT run_at FROM jobs WHERE lane = ? ORDER BY run_at, id LIMIT 1`

// firstRunAt returns the run_at of the first queued job of a group in a lane; ok is false if there is none.
func firstRunAt(ctx context.Context, tx *ledger.Tx, lane string) (runAt int64, ok bool, err error) {
	rows, err := tx.QueryState(ctx, firstInLane, lane)
	ok, err = table.First(rows, err, &runAt)
	return runAt, ok, err
}

// queuedGroups reads the index ready.
const queuedGroups = `SELECT lane, min(run_at) FROM jobs WHERE lane > '' AND lane LIKE ? GROUP BY lane`

// FromJobs returns the heads that the table jobs makes, without what was served and eligible, by the texts of
// their lanes. It reads every queued job.
func FromJobs(ctx context.Context, tx *ledger.Tx) (map[string]Head, error) {
	rows, err := tx.QueryState(ctx, queuedGroups, "%\t%")
	found := make(map[string]Head)
	var lane string
	var h Head
	err = table.Each(rows, err, []any{&lane, &h.RunAt}, func() error {
		h.Base, h.Group, _ = Split(lane)
		h.Queue = QueueOf(h.Base)
		found[lane] = h
		return nil
	})
	return found, err
}

const (
	unblock = `UPDATE group_heads SET eligible_at = CASE WHEN run_at > served_at THEN run_at ELSE served_at END
WHERE queue = ? AND eligible_at IS NULL`
	block = `UPDATE group_heads SET eligible_at = NULL WHERE queue = ? AND grp = ?`
	// hasten sets rows to the values that they have without rates of groups.
	hasten = `UPDATE group_heads SET eligible_at = CASE WHEN run_at > served_at THEN run_at ELSE served_at END
WHERE queue = ?1 AND eligible_at > CASE WHEN run_at > served_at THEN run_at ELSE served_at END`
	delay = `UPDATE group_heads SET eligible_at = ?1 WHERE queue = ?2 AND grp = ?3 AND eligible_at < ?1`
)

// Limit applies a new limit of a queue to its rows: blocked names the groups that have all the live claims
// that they may have, next is when the rates of groups let them start a job; nil: neither the new limit nor
// the old one has any. It costs the groups that are or were blocked, and with rates all groups of the queue.
func Limit(ctx context.Context, tx *ledger.Tx, queue string, blocked []string, next map[string]int64) error {
	n, err := tx.Name(ctx, queue)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(unblock, n); err != nil {
		return err
	}
	if next != nil {
		if _, err := tx.Exec(hasten, n); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if _, err := tx.Exec(delay, next[name], n, name); err != nil {
			return err
		}
	}
	for _, name := range blocked {
		if _, err := tx.Exec(block, n, name); err != nil {
			return err
		}
	}
	return nil
}
