package differ

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/projection/limit"
)

// Rate is a row of group_rates that differs.
type Rate struct {
	Name   string     // of the queue
	Stored limit.Used // with the group also where there is no row
	Want   int64      // 0: no claim asks for the row
	Detail string
}

// Rates compares the rows of group_rates with the fold, which began with the first event. Claims up to
// horizon may have left the ledger; then the fold knows the least that was used.
func Rates(ctx context.Context, tx *ledger.Tx, folded limit.Set, horizon int64) (found []Rate, err error) {
	rows, err := limit.AllUsed(ctx, tx)
	if err != nil {
		return nil, err
	}
	stored := make(map[LimitKey]limit.Used, len(rows))
	for _, u := range rows {
		stored[LimitKey{u.Queue, u.Group}] = u
	}
	for _, l := range folded.List() {
		if len(l.GroupUsed) == 0 {
			continue
		}
		n, err := tx.Name(ctx, l.Queue)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(l.GroupUsed)) {
			key, want := LimitKey{n, name}, l.GroupUsed[name]
			got, ok := stored[key]
			if delete(stored, key); ok && (got.Until == want || usedMore(horizon, got.Until, want)) {
				continue
			}
			d := Rate{Name: l.Queue, Stored: limit.Used{Queue: n, Group: name}, Want: want,
				Detail: "it has no row in the table group_rates"}
			if ok {
				d.Detail = Contradiction(UsedUntil, got.Until, want)
			}
			found = append(found, d)
		}
	}
	for _, u := range rows {
		if _, left := stored[LimitKey{u.Queue, u.Group}]; !left || horizon > 0 {
			continue
		}
		d := Rate{Name: fmt.Sprint("number ", u.Queue), Stored: u,
			Detail: "its row in the table group_rates belongs to no claim"}
		if name, err := tx.NameOf(ctx, u.Queue); err == nil {
			d.Name = name
		}
		found = append(found, d)
	}
	return found, nil
}
