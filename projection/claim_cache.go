package projection

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger"
)

// liveLane is a lane with queued jobs in it, and how far it has been read.
type liveLane struct {
	text     string
	priority int
	version  string
	requires []string
	runAt    int64         // of its next job; once ahead is used up, of the last one taken, which is not after the next
	id       string        // likewise
	begun    bool          // the job at runAt and id has been taken
	asked    *ledger.Asked // for what comes next; nil: it has not been
	most     int           // how many jobs have been asked for
	ahead    []Job
	had      int  // how many jobs the last read found
	atEnd    bool // there is nothing behind ahead that is due
	spent    bool // nobody knows whether there is a job at runAt, or any
}

// compare tells which lane has the next job in claiming order.
func (l *liveLane) compare(other *liveLane) int {
	return cmp.Or(other.priority-l.priority, cmp.Compare(l.runAt, other.runAt), cmp.Compare(l.id, other.id))
}

// rest gives back the jobs that were read and not taken: the next claim reads what has become of them.
func (l *liveLane) rest() {
	if len(l.ahead) > 0 {
		l.begun = false
	}
	l.asked, l.ahead, l.atEnd = nil, nil, false
}

// spend notes that all that was due by now has been taken.
func (l *liveLane) spend(now time.Time) {
	l.runAt, l.id, l.begun, l.spent = ledger.Micros(now)+1, "", false, true
}

// lanes is what a writer remembers of the jobs that are queued: the lanes of each queue that it has claimed from, and
// in each lane a place before which there is no job. It learns from the events what was queued since. So a claim need
// not list the lanes, and does not pass over what PostgreSQL keeps of jobs that have been claimed, until it is
// vacuumed: tens of thousands at the head of a busy queue.
type lanes struct {
	queues map[string][]*liveLane // each in the order of the texts
	listed time.Time
	guess  guess
}

// guess is what the next claim looks for first, if it looks where the last one found no more.
type guess struct {
	lane  *liveLane // nil: who knows
	most  int
	now   time.Time // of the last claim, by the clock of the ledger
	taken time.Time // by that of this process
	runAt int64     // the place that has been asked for: the jobs of the lane from there
	id    string
	until int64 // up to a time that should not have come before the answer
}

const (
	laneMemory = time.Second // after which the lanes are listed anew: a row may have been changed past the events
	maxMissed  = 2000        // events; rather than read more of them, the lanes are listed anew
	maxSpent   = 2           // lanes of a queue; rather than look into more of them, likewise
)

// queuedSince tells which jobs have been queued, and with a null, whether something else has happened on which lanes
// rest.
var queuedSince = fmt.Sprintf(`SELECT e.job, j.lane, j.run_at, j.id FROM events e LEFT JOIN jobs j ON j.n = e.job
WHERE e.pos > ?1 AND e.pos <= ?2 AND (e.to_state = %d OR e.kind IN (%s))`, ledger.Queued, kindsOfAll())

func kindsOfAll() string {
	var list []string
	for _, k := range ledger.Kinds() {
		if k.OfAll() {
			list = append(list, strconv.Itoa(int(k)))
		}
	}
	return strings.Join(list, ", ")
}

// Questions are what has happened, and where the last claim took all that there was, what has come there since.
func (known *lanes) Questions(after int64) []ledger.Question {
	questions := []ledger.Question{{Query: queuedSince, Args: []any{after, after + maxMissed}}}
	if g := &known.guess; g.lane != nil {
		g.runAt, g.id, g.until = g.lane.runAt, g.lane.id, ledger.Micros(g.now.Add(time.Since(g.taken)+time.Second))
		questions = append(questions, ledger.Question{Query: laneHeads, Args: []any{g.lane.text, g.runAt, g.id, g.until, g.most}})
	}
	return questions
}

// guessed returns the answer to what l is about to ask, if it was asked as the transaction began.
func (known *lanes) guessed(tx *ledger.Tx, l *liveLane, now time.Time) *ledger.Asked {
	g := &known.guess
	if l != g.lane || l.begun || l.runAt != g.runAt || l.id != g.id || ledger.Micros(now) > g.until {
		return nil
	}
	return tx.Answered(laneHeads)
}

// recall brings what is remembered up to date; where that would cost too much, it is empty.
func recall(ctx context.Context, tx *ledger.Tx) (_ *lanes, err error) {
	value, after, until := tx.Recall()
	known, ok := value.(*lanes)
	if !ok || until-after > maxMissed || time.Since(known.listed) > laneMemory {
		return noLanes(tx), nil
	}
	if until <= after {
		return known, nil
	}
	happened := tx.Answered(queuedSince)
	if happened == nil {
		if happened, err = tx.Ask(queuedSince, after, until); err != nil {
			return nil, err
		}
	}
	rows, err := happened.Rows(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var job, runAt sql.NullInt64
		var text, id sql.NullString
		if err := rows.Scan(&job, &text, &runAt, &id); err != nil {
			return nil, err
		}
		if !job.Valid || text.Valid && !known.add(text.String, runAt.Int64, id.String) {
			return noLanes(tx), nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	tx.Remember(known)
	return known, nil
}

func noLanes(tx *ledger.Tx) *lanes {
	known := &lanes{queues: make(map[string][]*liveLane), listed: time.Now()}
	tx.Remember(known)
	return known
}

// noteQueued takes in that this transaction queues a job.
func noteQueued(tx *ledger.Tx, lane string, runAt int64, id string) {
	if known, ok := tx.Remembered().(*lanes); ok && !known.add(lane, runAt, id) {
		tx.Forget()
	}
}

// add takes in that a job is queued; false if its lane cannot be read.
func (known *lanes) add(text string, runAt int64, id string) bool {
	queue, _, _ := strings.Cut(text, " ")
	list, ok := known.queues[queue]
	if !ok {
		return true
	}
	i, ok := slices.BinarySearchFunc(list, text, func(l *liveLane, text string) int { return cmp.Compare(l.text, text) })
	switch {
	case !ok:
		l, err := newLane(text, runAt, id)
		if err != nil {
			return false
		}
		known.queues[queue] = slices.Insert(list, i, l)
	case cmp.Or(cmp.Compare(runAt, list[i].runAt), cmp.Compare(id, list[i].id)) <= 0:
		list[i].runAt, list[i].id, list[i].begun, list[i].spent = runAt, id, false, false
	}
	return true
}

func newLane(text string, runAt int64, id string) (l *liveLane, err error) {
	l = &liveLane{text: text, runAt: runAt, id: id}
	l.priority, l.version, l.requires, err = laneOf(text)
	return l, err
}

// liveLanes lists the lanes of one queue by jumping from each to the next, each with its first job: a few index
// seeks per lane. A paused queue has none.
const liveLanes = `WITH RECURSIVE live(lane) AS (
    SELECT (SELECT min(lane) FROM jobs WHERE lane >= ?1 AND lane < ?2)
    WHERE NOT EXISTS (SELECT 1 FROM queues WHERE paused = 1 AND queue = (SELECT n FROM names WHERE name = ?3))
    UNION ALL
    SELECT (SELECT min(lane) FROM jobs WHERE lane > live.lane AND lane < ?2) FROM live WHERE live.lane IS NOT NULL)
SELECT live.lane, j.run_at, j.id
FROM live JOIN jobs j ON j.id = (SELECT i.id FROM jobs i WHERE i.lane = live.lane ORDER BY i.run_at, i.id LIMIT 1)`

// fitting returns the live lanes that fit, and the first that cannot be read, if any.
func fitting(ctx context.Context, tx *ledger.Tx, want Want) (fit []*liveLane, damaged, err error) {
	known, err := recall(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	for _, queue := range slices.Compact(slices.Sorted(slices.Values(want.Queues))) {
		list, ok := known.queues[queue]
		if !ok || spent(list) > maxSpent {
			var damage error
			list, damage, err = listLanes(ctx, tx, queue)
			if err != nil {
				return nil, nil, err
			}
			delete(known.queues, queue)
			if damage == nil && len(list) > 0 { // a queue without any may be paused
				known.queues[queue] = list
			}
			damaged = cmp.Or(damaged, damage)
		}
		for _, l := range list {
			if fits, _ := Fits(Job{Version: l.version, Requires: l.requires}, want.Version, want.Capabilities); fits {
				fit = append(fit, l)
			}
		}
	}
	return fit, damaged, nil
}

func spent(list []*liveLane) (n int) {
	for _, l := range list {
		if l.spent {
			n++
		}
	}
	return n
}

// listLanes returns the live lanes of a queue, and the first that cannot be read, if any.
func listLanes(ctx context.Context, tx *ledger.Tx, queue string) (list []*liveLane, damaged, err error) {
	from, before := laneBounds(queue)
	rows, err := tx.QueryState(ctx, liveLanes, from, before, queue)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text, id string
		var runAt int64
		if err := rows.Scan(&text, &runAt, &id); err != nil {
			return nil, nil, err
		}
		l, damage := newLane(text, runAt, id)
		if damage != nil {
			damaged = cmp.Or[error](damaged, &DamagedJobError{Err: damage})
			continue
		}
		list = append(list, l)
	}
	return list, damaged, rows.Err()
}
