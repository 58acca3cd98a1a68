package differ

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
	"jobledger/projection/limit"
)

// limitFields are the columns of the table limits, in the order of a limit.Row.
var limitFields = [...]string{"queue", "grp", "running", "per_group", "rate", "rate_per", "burst", UsedUntil,
	"group_rate", "group_rate_per", "group_burst", "ageing", "since", "actor", "reason"}

// UsedUntil is the column that follows from the claims.
const UsedUntil = "used_until"

// LimitKey is the primary key of a row of limits.
type LimitKey struct {
	Queue int64
	Group string
}

// Limit is a defect of a row of limits: the whole row, or one field.
type Limit struct {
	LimitKey
	Name   string // of the queue
	Field  string // "": the whole row
	Detail string
}

// usedMore reports whether claims that have left the ledger may have used more of a rate than the fold knows.
func usedMore(horizon int64, got, want any) bool {
	stored, _ := got.(int64)
	folded, _ := want.(int64)
	return horizon > 0 && stored >= folded
}

// Limits compares the rows of limits with the fold. If that began after the first event (whole is
// false), what the claims have used of a rate is as it is stored. Claims up to horizon may have left the
// ledger; then the fold knows the least that was used.
func Limits(ctx context.Context, tx *ledger.Tx, folded limit.Set, whole bool, horizon int64) (
	found []Limit, err error) {
	stored, order, err := storedLimits(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, l := range folded.List() {
		wanted, err := limit.RowsOf(ctx, tx, l)
		if err != nil {
			return nil, err
		}
		for _, want := range wanted {
			key := LimitKey{want[0].(int64), want[1].(string)}
			got, ok := stored[key]
			if delete(stored, key); !ok {
				found = append(found, Limit{key, l.Queue, "", "it has no row in the table limits"})
				continue
			}
			for i, field := range limitFields {
				if field == UsedUntil && (!whole || usedMore(horizon, got[i], want[i])) {
					continue
				}
				if got[i] != want[i] {
					found = append(found, Limit{key, l.Queue, field, Contradiction(field, got[i], want[i])})
				}
			}
		}
	}
	for _, key := range order {
		if _, left := stored[key]; !left {
			continue
		}
		d := Limit{key, fmt.Sprint("number ", key.Queue), "",
			"its row in the table limits belongs to no event"}
		if name, err := tx.NameOf(ctx, key.Queue); err == nil {
			d.Name = name
		}
		found = append(found, d)
	}
	return found, nil
}

// storedLimits returns the rows of limits, and their keys in order.
func storedLimits(ctx context.Context, tx *ledger.Tx) (stored map[LimitKey]limit.Row, order []LimitKey,
	err error) {
	rows, err := tx.Query(ctx, `SELECT `+limit.Columns+` FROM limits ORDER BY queue, grp`)
	stored = make(map[LimitKey]limit.Row)
	var key LimitKey
	var r limit.Row
	into := []any{&key.Queue, &key.Group}
	for i := range r[2:] {
		into = append(into, &r[i+2])
	}
	err = table.Each(rows, err, into, func() error {
		r[0], r[1] = key.Queue, key.Group
		stored[key], order = r, append(order, key)
		return nil
	})
	return stored, order, err
}
