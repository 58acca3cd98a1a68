package status

import (
	"context"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// signs are what the events of a worker process say about its life, besides its starts and stops.
type signs struct {
	acted time.Time // its last act up to the moment: a claim, or what it wrote about one
	taken time.Time // the last time up to the moment that the end of a lease lost it a job
	later bool      // it acted after the moment
	lost  bool      // the end of a lease lost it a job after the moment
}

// recentClaims are the last claims of the process ?1 up to the event ?2, by the index claims.
var recentClaims = event.SQL(`SELECT c.job FROM events c
    WHERE c.kind = {claimed} AND c.worker = ?1 AND c.pos <= ?2
    AND c.at <= coalesce((SELECT b.at FROM events b WHERE b.pos = ?2), 9223372036854775807)
    ORDER BY c.at DESC LIMIT `)

// maxRecentClaims is how many of a process' last claims are searched for its acts. Older claims have ended
// before, or are held.
const maxRecentClaims = 256

// lastActs finds the last act of the process and the last job that the end of a lease lost it, up to the
// event ?2 and after it, by the events of its last ?4 claims up to ?2. It leaves out jobs that had ended by
// ?3 and in which nothing has happened since, so it need not find what was before ?3.
var lastActs = actsColumns + `e.worker = ?1 AND e.job IN (SELECT r.job
        FROM (` + recentClaims + `?4) r LEFT JOIN jobs j ON j.n = r.job
        WHERE j.finished_at IS NULL OR j.finished_at > ?3
            OR EXISTS (SELECT 1 FROM events x WHERE x.job = r.job AND x.seq IS NULL))`

// actsIn is lastActs in given jobs.
var actsIn = actsColumns + `e.worker = ?1 AND e.job IN (` + numbered(3, table.Chunk) + `)`

// numbered returns n placeholders from the one with the number first on.
func numbered(first, n int) string {
	var list strings.Builder
	for i := range n {
		list.WriteString(",?" + strconv.Itoa(first+i))
	}
	return list.String()[1:]
}

var actsColumns = event.SQL(`SELECT
    coalesce(max(CASE WHEN e.pos <= ?2 AND e.kind <> {reclaimed} THEN e.at END), 0),
    coalesce(max(CASE WHEN e.pos <= ?2 AND ` + lostAt + ` THEN e.at END), 0),
    coalesce(max(CASE WHEN e.pos > ?2 AND e.kind <> {reclaimed} THEN e.at END), 0),
    coalesce(max(CASE WHEN e.pos > ?2 AND ` + lostAt + ` THEN e.at END), 0)
FROM events e WHERE e.kind IN ({reclaimed}, {kinds:signOfLife}) AND `)

const lostAt = `e.kind = {reclaimed} AND coalesce(CAST(e.data AS TEXT), '') NOT LIKE '%max_runtime%'`

var claimedSince = event.SQL(`SELECT c.pos FROM events c
WHERE c.kind = {claimed} AND c.worker = ? AND c.at > ? LIMIT 1`)

// takeovers are the jobs whose claims were taken over, by the number of the process that did. They are few.
var takeovers = event.SQL(`SELECT e.worker, e.job FROM events e
WHERE e.kind = {taken_over} AND e.kind > {rareAfter} AND e.worker IS NOT NULL AND e.pos > ? ORDER BY e.pos`)

// takenOver returns the jobs whose claims each process took over after a pos, by its number.
func takenOver(ctx context.Context, tx *ledger.Tx, after int64) (jobs map[int64][]int64, err error) {
	rows, err := tx.Query(ctx, takeovers, after)
	jobs = make(map[int64][]int64)
	var n, job int64
	err = table.Each(rows, err, []any{&n, &job}, func() error {
		jobs[n] = append(jobs[n], job)
		return nil
	})
	return jobs, err
}

// signsOf returns the signs of life of the process with the number n, which took over claims of the jobs
// over, as of m; with past, what came later too. The last few claims show most; of the others only the jobs
// that went on are read.
func signsOf(ctx context.Context, tx *ledger.Tx, n int64, over []int64, m projection.Moment, past bool) (
	s signs, err error) {
	var acted int64
	read := func(query string, args ...any) {
		var found [4]int64 // as actsColumns
		if err == nil {
			err = table.ScanOne(ctx, tx, query, []any{&found[0], &found[1], &found[2], &found[3]}, args...)
		}
		acted = max(acted, found[0])
		s.acted = latestOf(s.acted, event.FromMicros(found[0]))
		s.taken = latestOf(s.taken, event.FromMicros(found[1]))
		s.later = s.later || past && event.FromMicros(found[2]).After(m.At)
		s.lost = s.lost || past && event.FromMicros(found[3]).After(m.At)
	}
	for jobs := range table.Chunks(over[max(0, len(over)-maxRecentClaims):]) {
		read(actsIn, append([]any{n, m.Pos}, jobs...)...)
	}
	read(lastActs, n, m.Pos, 0, maxRecentClaims/16)
	read(lastActs, n, m.Pos, acted, maxRecentClaims)
	if err != nil || !past || s.later {
		return s, err
	}
	var later int64
	err = table.ScanOne(ctx, tx, claimedSince, []any{&later}, n, event.Micros(m.At))
	s.later = later > 0
	return s, err
}
