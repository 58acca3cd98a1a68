package projection

import (
	"cmp"
	"context"
	"math"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

var byPrefix = `SELECT ` + table.List +
	` FROM jobs j WHERE j.id >= ?1 AND j.id < ?1 || '~' ORDER BY j.id LIMIT ?2`

// Find returns up to limit jobs whose id begins with prefix: people shorten ids.
func Find(ctx context.Context, tx *ledger.Tx, prefix string, limit int) ([]Job, error) {
	return queryJobs(ctx, tx, byPrefix, prefix, limit)
}

var bySuffix = `SELECT ` + table.List + ` FROM jobs j WHERE j.id LIKE ?1 ORDER BY j.id LIMIT ?2`

// FindBySuffix returns up to limit jobs whose id ends with suffix, which must be of the alphabet of ids. It
// reads all ids.
func FindBySuffix(ctx context.Context, tx *ledger.Tx, suffix string, limit int) ([]Job, error) {
	return queryJobs(ctx, tx, bySuffix, "%"+suffix, limit)
}

// byAnyKey goes from queue to queue with keyed jobs along the index on (queue, key), and looks the key up in
// each.
var byAnyKey = `WITH RECURSIVE q(n) AS (SELECT min(queue) FROM jobs WHERE key IS NOT NULL
    UNION ALL SELECT (SELECT min(i.queue) FROM jobs i WHERE i.key IS NOT NULL AND i.queue > q.n)
    FROM q WHERE q.n IS NOT NULL)
SELECT ` + table.List + ` FROM q CROSS JOIN jobs j WHERE j.queue = q.n AND j.key = ?
ORDER BY j.n DESC LIMIT ?`

// FindByKey returns up to limit jobs with this key, in whatever queue, the newest first.
func FindByKey(ctx context.Context, tx *ledger.Tx, key string, limit int) ([]Job, error) {
	return queryJobs(ctx, tx, byAnyKey, key, limit)
}

var newest = `SELECT ` + table.List + ` FROM jobs j WHERE j.queue = ? AND j.n <= ? ORDER BY j.n DESC LIMIT 1`

// Newest returns the job that was enqueued last into queue, with a number of at most until (0: any); ok is
// false if there is none. It reads the jobs from the newest on, so that it costs what was enqueued into other
// queues since.
func Newest(ctx context.Context, tx *ledger.Tx, queue string, until int64) (j Job, ok bool, err error) {
	n, err := tx.Name(ctx, queue)
	if err != nil || n == 0 {
		return j, false, err
	}
	until = cmp.Or(until, math.MaxInt64)
	return queryJob(ctx, tx, newest, n, until)
}

// unusedLimit is how many jobs QueueUnused reads.
const unusedLimit = 100_000

const (
	amongNewest = `SELECT 1 FROM (SELECT queue FROM jobs ORDER BY n DESC LIMIT ?) newest WHERE queue = ? LIMIT 1`
	jobsUpTo    = `SELECT count(*) FROM (SELECT n FROM jobs LIMIT ?) counted`
)

// QueueUnused reports whether there has never been a job in queue. A name that is not in the ledger is
// unused. For a name that it holds, which may be that of a queue that was only paused, the newest 100,000
// jobs decide; where there are more, it counts as used.
func QueueUnused(ctx context.Context, tx *ledger.Tx, queue string) (bool, error) {
	n, err := tx.Name(ctx, queue)
	if err != nil || n == 0 {
		return err == nil, err
	}
	var found, jobs int64
	err = table.ScanOne(ctx, tx, amongNewest, []any{&found}, unusedLimit, n)
	if err == nil && found == 0 {
		err = table.ScanOne(ctx, tx, jobsUpTo, []any{&jobs}, unusedLimit)
	}
	return err == nil && found == 0 && jobs < unusedLimit, err
}

const plainNames = `SELECT name FROM names WHERE name NOT LIKE '%:%' ORDER BY name`

// PlainNames returns the names in the ledger that may be those of queues: most actors, such as cli:ada, are
// not among them.
func PlainNames(ctx context.Context, tx *ledger.Tx) (names []string, err error) {
	return table.Column[string](tx.Query(ctx, plainNames))
}
