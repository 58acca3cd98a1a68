package main

import (
	"context"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/schedules"
	"jobledger/projection/status"
)

// namedJobs is how many jobs TAB offers: the newest.
const namedJobs = 50

// names returns what there is of that kind in the ledger, for completion: nothing where that cannot be read.
// Jobs have their numbers, and their ids where one was begun.
func (p *program) names(ctx context.Context, what, begun string) (names [][2]string) {
	store, err := ledger.OpenExisting(ctx, p.DB)
	if err != nil {
		return nil
	}
	defer store.Close()
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		names = nil
		switch what {
		case cli.QueueNames:
			found, err := status.Queues{At: projection.Now(p.Now())}.Read(ctx, tx)
			for _, q := range found {
				names = append(names, [2]string{q.Name, words.Count(q.Ready, "ready job")})
			}
			return err
		case cli.ScheduleNames:
			found, err := schedules.List(ctx, tx)
			for _, s := range found {
				names = append(names, [2]string{s.Spec.Name, strings.TrimSpace(s.Spec.Cron + " " + s.Spec.Queue)})
			}
			return err
		case cli.WorkerNames:
			found, err := status.Workers{At: projection.Now(p.Now())}.Read(ctx, tx)
			for _, w := range found {
				names = append(names, [2]string{w.Name, w.Host})
			}
			return err
		}
		found, err := projection.List(ctx, tx, projection.Filter{Limit: namedJobs})
		for _, j := range found {
			text, whatErr := state.What(ctx, tx, j)
			if whatErr != nil {
				return whatErr
			}
			text = strings.TrimSpace(j.State.String() + " in " + j.Queue + " " + text)
			name := strconv.FormatInt(j.N, 10)
			if strings.HasPrefix(begun, "0") {
				name = string(j.ID)
			}
			names = append(names, [2]string{name, text})
		}
		return err
	})
	if err != nil {
		return nil
	}
	return names
}
