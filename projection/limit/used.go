package limit

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// The table group_rates has a row for each group that started a job since its rate was set. They are as many
// as the groups that were served, and are read one at a time.

var putGroupUsed = ledger.NewUpsert("group_rates", "queue, grp", ledger.ColumnTypes{"grp": ledger.TextColumn},
	"queue", "grp", "used_until")

// PutGroupUsed writes until when, in microseconds, the starts of a group of a queue use up its rate.
func PutGroupUsed(ctx context.Context, tx *ledger.Tx, queue, group string, used int64) error {
	n, err := tx.Name(ctx, queue)
	if err != nil {
		return err
	}
	return tx.Put(putGroupUsed, n, group, used)
}

// DeleteGroupUsed removes the row of a group; queue is the number of the name.
func DeleteGroupUsed(tx *ledger.Tx, queue int64, group string) error {
	_, err := tx.Exec(`DELETE FROM group_rates WHERE queue = ? AND grp = ?`, queue, group)
	return err
}

const selectGroupUsed = `SELECT coalesce(max(used_until), 0) FROM group_rates
WHERE queue = (SELECT n FROM names WHERE name = ?) AND grp = ?`

// GroupUsed returns until when, in microseconds, the starts of a group of a queue use up its rate; 0 if there
// were none since that was set.
func GroupUsed(ctx context.Context, tx *ledger.Tx, queue, group string) (used int64, err error) {
	err = table.ScanOne(ctx, tx, selectGroupUsed, []any{&used}, queue, group)
	return used, err
}

// Used is a row of group_rates.
type Used struct {
	Queue int64 // names.n
	Group string
	Until int64 // in microseconds
}

const selectUsedOf = `SELECT queue, grp, used_until FROM group_rates `

// AllUsed returns the rows of group_rates.
func AllUsed(ctx context.Context, tx *ledger.Tx) ([]Used, error) {
	return queryUsed(ctx, tx, selectUsedOf+`ORDER BY queue, grp`)
}

func queryUsed(ctx context.Context, tx *ledger.Tx, text string, args ...any) (found []Used, err error) {
	rows, err := tx.QueryState(ctx, text, args...)
	return table.All(rows, err, func(u *Used) []any { return []any{&u.Queue, &u.Group, &u.Until} })
}

// KeepUsed removes the rows of the groups of a queue that have another rate after a change from before to
// after. It returns the next starts of the others, in microseconds, by group.
func KeepUsed(ctx context.Context, tx *ledger.Tx, before, after Limit) (next map[string]int64, err error) {
	queue, err := tx.Name(ctx, after.Queue)
	if err != nil {
		return nil, err
	}
	stored, err := queryUsed(ctx, tx, selectUsedOf+`WHERE queue = ? ORDER BY grp`, queue)
	if err != nil {
		return nil, err
	}
	next = make(map[string]int64)
	for _, u := range stored {
		if before.GroupRate(u.Group) == after.GroupRate(u.Group) {
			next[u.Group] = after.GroupNextStart(u.Group, u.Until)
		} else if err := DeleteGroupUsed(tx, u.Queue, u.Group); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// most returns until when r may be used up, at most, by starts before a time in microseconds.
func (r Rate) most(at int64) int64 {
	if r.N == 0 {
		return 0
	}
	return at + r.allowance() + r.interval()
}

// UsedUp returns l as if the starts before a time in microseconds had used as much of its rate as is allowed.
func (l Limit) UsedUp(at int64) Limit {
	l.UsedUntil = l.Rate.most(at)
	return l
}

// GroupUsedUp is UsedUp for the rate of one group.
func (l Limit) GroupUsedUp(group string, at int64) Limit {
	used := map[string]int64{group: l.GroupRate(group).most(at)}
	for name, until := range l.GroupUsed {
		if name != group {
			used[name] = until
		}
	}
	l.GroupUsed = used
	return l
}

// LongestGroupUse returns for how long, in microseconds, after its last start a group may have to wait.
func (l Limit) LongestGroupUse() int64 {
	longest := l.PerGroupRate.most(0)
	for _, x := range l.Exceptions {
		longest = max(longest, x.Rate.most(0))
	}
	return longest
}
