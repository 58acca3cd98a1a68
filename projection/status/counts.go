package status

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
)

// jobCounts are how many jobs each queue has in each state, now and at a moment.
type jobCounts struct {
	now   map[string]map[event.State]int64
	ended map[string]map[event.State]int64 // at the moment
	whole bool                             // ended has those too that have been retried since
	open  []int64                          // where whole: the numbers of the jobs that had not ended then
}

// openNow reads the indexes on queued and on held jobs, and the jobs that wait for others.
var openNow = event.SQL(`SELECT queue, state, count(*), 0 FROM jobs WHERE lane > '' GROUP BY queue, state
UNION ALL SELECT queue, state, count(*), 0 FROM jobs WHERE lease_expires_at > 0 GROUP BY queue, state
UNION ALL SELECT queue, state, count(*), 0 FROM jobs
    WHERE state = {state:blocked} AND n IN (SELECT child FROM deps)
GROUP BY queue, state`)

// everyJob reads the rows of all jobs.
const everyJob = `SELECT queue, state, count(*), count(CASE WHEN finished_at < ? THEN 1 END) FROM jobs
GROUP BY queue, state`

// countJobs counts the jobs now, and those that had ended at m. Where keyframes are near, it reads these, the
// events since and the jobs that have not ended, and otherwise every row of jobs.
func countJobs(ctx context.Context, tx *ledger.Tx, m projection.Moment) (c jobCounts, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return c, err
	}
	now, err := keyframe.Near(ctx, tx, tail)
	if err != nil {
		return c, err
	}
	then, err := keyframe.Near(ctx, tx, m.Pos)
	if err != nil {
		return c, err
	}
	if now != nil && then != nil {
		c.now, c.ended, c.whole, c.open = now.Ended(), then.Ended(), true, then.Open()
		return c, c.add(ctx, tx, openNow)
	}
	c.now = make(map[string]map[event.State]int64)
	c.ended = make(map[string]map[event.State]int64)
	err = c.add(ctx, tx, everyJob, m.FinishedBefore())
	if then != nil { // the rows do not show that a job had ended and was retried since
		c.ended, c.whole, c.open = then.Ended(), true, then.Open()
	}
	return c, err
}

// add adds the counts that query finds: jobs now, and those that had ended at the moment.
func (c *jobCounts) add(ctx context.Context, tx *ledger.Tx, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	var number, jobs, ended int64
	var state event.State
	return table.Each(rows, err, []any{&number, &state, &jobs, &ended}, func() error {
		queue, err := tx.NameOf(ctx, number)
		if err != nil {
			return err
		}
		addCount(c.now, queue, state, jobs)
		addCount(c.ended, queue, state, ended)
		return nil
	})
}

func addCount(counts map[string]map[event.State]int64, queue string, s event.State, n int64) {
	if n == 0 {
		return
	}
	if counts[queue] == nil {
		counts[queue] = make(map[event.State]int64)
	}
	counts[queue][s] += n
}
