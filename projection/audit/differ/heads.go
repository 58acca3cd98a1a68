package differ

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/projection/fold"
	"jobledger/projection/group"
	"jobledger/projection/limit"
)

// Head is a row of group_heads that differs.
type Head struct {
	Want, Got group.Head
	Missing   bool // there is no such row
	Extra     bool // no queued job asks for it
	Lane      string
	Field     string // "": the whole row
	Detail    string
}

// Heads compares the rows of group_heads with the queued jobs and the live claims, and with what the
// fold says was served. If that began after the first event, served is as it is stored; so it is where the
// last claim came after the event at until, or where it may have left the ledger, up to horizon.
func Heads(ctx context.Context, tx *ledger.Tx, f *fold.Fold, whole bool, horizon, until int64) (
	found []Head, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	all, err := group.All(ctx, tx)
	if err != nil || len(all) == 0 && len(f.Groups) == 0 && whole {
		return nil, err
	}
	want, err := group.FromJobs(ctx, tx)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]group.Head, len(all))
	for _, h := range all {
		rows[h.Base+"\t"+h.Group] = h
	}
	gates := make(map[string]*limit.Gate)
	for _, lane := range slices.Sorted(maps.Keys(want)) {
		h := want[lane]
		if gates[h.Queue] == nil {
			l, err := limit.Of(ctx, tx, h.Queue)
			if err != nil {
				return nil, err
			}
			gates[h.Queue] = &limit.Gate{Limit: l}
		}
		room, err := gates[h.Queue].GroupRoom(ctx, tx, h.Group, 1)
		if err != nil {
			return nil, err
		}
		next, err := gates[h.Queue].GroupNextStart(ctx, tx, h.Group)
		if err != nil {
			return nil, err
		}
		got, there := rows[lane]
		delete(rows, lane)
		stored := !whole || got.Pos > until && got.Pos <= tail || got.Pos > 0 && got.Pos <= horizon
		if h.Served = f.Groups[lane].Served; there && stored {
			h.Served = got.Served
		}
		if h = h.Fill(room == 0, next); !there {
			found = append(found, Head{Want: h, Missing: true, Lane: lane,
				Detail: "it has no row in the table group_heads"})
			continue
		}
		found = appendDiffering(found, lane, got, h)
	}
	for _, lane := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, Head{Got: rows[lane], Extra: true, Lane: lane,
			Detail: "its row in the table group_heads belongs to no queued job"})
	}
	return found, nil
}

func appendDiffering(found []Head, lane string, got, want group.Head) []Head {
	add := func(field string, stored, folded any) {
		if stored != folded {
			found = append(found, Head{Want: want, Got: got, Lane: lane, Field: field,
				Detail: Contradiction(field, stored, folded)})
		}
	}
	eligible := func(h group.Head) any {
		if h.Blocked {
			return nil
		}
		return h.Eligible
	}
	add("queue", got.Queue, want.Queue)
	add("run_at", got.RunAt, want.RunAt)
	add("served_at", got.At, want.At)
	add("served", got.Pos, want.Pos)
	add("eligible_at", eligible(got), eligible(want))
	return found
}
