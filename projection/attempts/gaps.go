package attempts

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Gaps are the times between the signs of life of one worker process: from a claim to its first heartbeat,
// and from each heartbeat of a claim to its next one. A process with several claims has the gaps of each.
type Gaps struct {
	Worker  event.Worker
	Counts  []int64 // by [GapEnds]; the last one is of those that were longer
	Longest time.Duration
	Pos     int64 // of the heartbeat that ended the longest one
}

// GapEnds are the upper ends of the buckets of [Gaps]: a gap is in the first bucket whose end is not shorter.
var GapEnds = [...]time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	15 * time.Second, 20 * time.Second, 25 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute,
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute}

// Sum is how many gaps there are.
func (g *Gaps) Sum() (n int64) {
	for _, c := range g.Counts {
		n += c
	}
	return n
}

// Add adds those of another process.
func (g *Gaps) Add(more Gaps) {
	if g.Counts == nil {
		g.Counts = make([]int64, len(GapEnds)+1)
	}
	for i, n := range more.Counts {
		g.Counts[i] += n
	}
	if more.Longest > g.Longest {
		g.Longest, g.Pos = more.Longest, more.Pos
	}
}

// gapsBetween reads the heartbeats in a range of pos, each with the event before it of its job.
var gapsBetween = event.SQL(`SELECT e.pos, e.worker, e.at - p.at FROM events e
JOIN events p ON p.job = e.job AND p.seq = e.seq - 1 WHERE e.kind = {heartbeat} AND e.pos > ? AND e.pos <= ?`)

// gapsOf are those of some jobs.
var gapsOf = gapsBetween + ` AND e.seq > 0 AND e.job IN (` + table.Placeholders(table.Chunk) + `)`

// HeartbeatGaps returns the gaps that ended after from, up to to, by the name of the worker and the boot of
// its process. It costs the events in between.
func HeartbeatGaps(ctx context.Context, tx *ledger.Tx, from, to projection.Moment) ([]Gaps, error) {
	l := gapList{byProcess: make(map[int64]*Gaps)}
	if err := l.add(ctx, tx, gapsBetween, from.Pos, to.Pos); err != nil {
		return nil, err
	}
	return l.gaps(ctx, tx, "")
}

// HeartbeatGapsOf is [HeartbeatGaps] of the worker called name, whose claims, which were live in between, are
// known. It costs the events of their jobs.
func HeartbeatGapsOf(ctx context.Context, tx *ledger.Tx, from, to projection.Moment, name string,
	known []Attempt) ([]Gaps, error) {
	l := gapList{byProcess: make(map[int64]*Gaps)}
	var jobs []int64
	for _, a := range known {
		jobs = append(jobs, a.N)
	}
	slices.Sort(jobs)
	for some := range table.Chunks(slices.Compact(jobs)) {
		if err := l.add(ctx, tx, gapsOf, append([]any{from.Pos, to.Pos}, some...)...); err != nil {
			return nil, err
		}
	}
	return l.gaps(ctx, tx, name)
}

// gapList collects gaps by the number of the process.
type gapList struct{ byProcess map[int64]*Gaps }

// add adds what a query finds.
func (l *gapList) add(ctx context.Context, tx *ledger.Tx, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	var pos, worker, micros int64
	return table.Each(rows, err, []any{&pos, &worker, &micros}, func() error {
		g := l.byProcess[worker]
		if g == nil {
			g = &Gaps{Counts: make([]int64, len(GapEnds)+1)}
			l.byProcess[worker] = g
		}
		gap := time.Duration(micros) * time.Microsecond
		g.Counts[sort.Search(len(GapEnds), func(i int) bool { return GapEnds[i] >= gap })]++
		if gap > g.Longest || g.Pos == 0 || gap == g.Longest && pos < g.Pos {
			g.Longest, g.Pos = gap, pos
		}
		return nil
	})
}

// gaps are those of the worker called name; "": of all.
func (l *gapList) gaps(ctx context.Context, tx *ledger.Tx, name string) (found []Gaps, err error) {
	for n, g := range l.byProcess {
		if g.Worker, err = tx.WorkerOf(ctx, n); err != nil {
			return nil, err
		}
		if name == "" || g.Worker.Name == name {
			found = append(found, *g)
		}
	}
	slices.SortFunc(found, func(a, b Gaps) int {
		return cmp.Or(cmp.Compare(a.Worker.Name, b.Worker.Name), cmp.Compare(a.Worker.Boot, b.Worker.Boot))
	})
	return found, nil
}
