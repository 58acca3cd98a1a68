package claims

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/internal/table"
	"jobledger/projection/limit"
)

// claimCache is what the writer of a ledger keeps between claims, in the TxCache of its store: the lanes of
// the queues that it has claimed from, each with a position before which the lane has no job. A claim then
// need not list the lanes, and on PostgreSQL it does not step over the index entries of jobs that were
// claimed since the last vacuum, which are tens of thousands at the head of a busy queue.
//
// Three things keep it correct. Events of other writers are read by load. Put adds the jobs that this writer
// queues. Whatever else changes the tables invalidates the cache: PutQueue, a rebuild, and any failed
// transaction. What is changed past the ledger is noticed after maxCacheAge, or maxSoleAge.
//
// Without it a drain of a queue takes 1.2 to 1.6 times as long on PostgreSQL, and on SQLite 1.07 times the
// processor time where few jobs are claimed at once (8 slots; with 64 slots it makes no difference).
type claimCache struct {
	queues      map[string][]*laneCursor // each in the order of the lanes' texts
	gates       map[string]*limit.Gate   // the limits of the queues that were looked at, if any
	grouped     map[string]bool          // queues that may have queued jobs of groups
	listed      time.Time                // when the cache was last empty
	speculation speculation
}

// speculation is the place where the next claim should look first: where the last one ended, or the lane that
// it emptied. The rows are fetched as the next transaction begins, before it is known whether a claim
// follows.
type speculation struct {
	lane   *laneCursor // nil: none
	busy   bool        // the last claim ended there, with as many jobs as it wanted
	limit  int
	now    time.Time // the ledger's clock at the last claim
	wall   time.Time // this process's clock then
	runAt  int64     // the position from which rows were requested
	id     string
	taken  bool
	latest int64 // the run_at up to which rows were requested: beyond the likely time of the next claim
}

const (
	maxCacheAge     = time.Second // a row may have been changed without an event
	maxMissedEvents = 2000        // listing the lanes costs less than reading more events
	maxDrainedLanes = 2           // of a queue; listing its lanes costs less than searching more of them

	// A burst is one round trip, and a search several of them, under the write lock. So what is known of the
	// only lane of a claim is used for longer, also by a worker whose jobs take a minute, and while others
	// write much.
	maxSoleAge          = 2 * time.Minute
	maxMissedOfSoleLane = 10_000
)

// queuedSince lists the jobs that were queued by a range of events, and a null if one of them may concern all
// jobs.
var queuedSince = event.SQL(`SELECT e.job, j.lane, j.run_at, j.id
FROM events e LEFT JOIN jobs j ON j.n = e.job
WHERE e.pos > ?1 AND e.pos <= ?2 AND (e.to_state = {state:queued} OR e.kind IN ({kinds:ofAllJobs}))`)

// loadClaimCache returns the cache of tx's store, brought up to date, or an empty one. The lanes that a
// search takes from it are advanced in place, so an empty one is stored for later claims too.
func loadClaimCache(ctx context.Context, tx *ledger.Tx) (*claimCache, error) {
	value, after, until := tx.Cache().Load()
	c, ok := value.(*claimCache)
	if !ok || until-after > maxMissedEvents || time.Since(c.listed) > maxCacheAge {
		return storeEmptyClaimCache(tx), nil
	}
	if until <= after {
		return c, nil
	}
	for _, gate := range c.gates {
		gate.Forget()
	}
	complete, err := c.addSince(ctx, tx, after, until)
	if err != nil {
		return nil, err
	}
	if !complete {
		return storeEmptyClaimCache(tx), nil
	}
	tx.Cache().Store(c)
	return c, nil
}

func newClaimCache() *claimCache {
	return &claimCache{queues: make(map[string][]*laneCursor), gates: make(map[string]*limit.Gate),
		grouped: make(map[string]bool), listed: time.Now()}
}

// withoutLanes returns a cache with lanes of its own and the limits of c.
func (c *claimCache) withoutLanes() *claimCache {
	own := newClaimCache()
	own.gates, own.grouped = c.gates, c.grouped
	return own
}

func storeEmptyClaimCache(tx *ledger.Tx) *claimCache {
	c := newClaimCache()
	tx.Cache().Store(c)
	return c
}

// addSince adds the jobs that were queued by the events after the pos after, up to until; complete is false
// if the cache cannot follow what they did.
func (c *claimCache) addSince(ctx context.Context, tx *ledger.Tx, after, until int64) (complete bool,
	err error) {
	queued := tx.Cache().Prefetched(queuedSince)
	if queued == nil {
		if queued, err = tx.Prefetch(queuedSince, after, until); err != nil {
			return false, err
		}
	}
	rows, err := queued.Rows(ctx)
	complete = true
	var job, runAt sql.NullInt64
	var lane, id sql.NullString
	err = table.Each(rows, err, []any{&job, &lane, &runAt, &id}, func() error {
		complete = complete && job.Valid && (!lane.Valid || c.add(lane.String, runAt.Int64, id.String))
		return nil
	})
	return complete, err
}

// cacheQueued adds a job that tx queues to the cache of tx's store.
func cacheQueued(tx *ledger.Tx, j projection.Job) {
	c, ok := tx.Cache().Value().(*claimCache)
	if ok && !c.add(projection.LaneOf(j), event.Micros(j.RunAt), string(j.ID)) {
		tx.Cache().Invalidate()
	}
}

// cacheHeld notes in the cache of tx's store that a claim of j begins or ends.
func cacheHeld(tx *ledger.Tx, j projection.Job, change int64) {
	if c, ok := tx.Cache().Value().(*claimCache); ok && c.gates[j.Queue] != nil {
		c.gates[j.Queue].Note(j.Group, change)
	}
}

// gate returns the limits of a queue.
func (c *claimCache) gate(ctx context.Context, tx *ledger.Tx, queue string) (*limit.Gate, error) {
	gate := c.gates[queue]
	if gate == nil {
		l, err := limit.Of(ctx, tx, queue)
		if err != nil {
			return nil, err
		}
		gate = &limit.Gate{Limit: l}
		c.gates[queue] = gate
	}
	return gate, nil
}

// gateOf returns the limits of a queue, from the cache of tx's store.
func gateOf(ctx context.Context, tx *ledger.Tx, queue string) (*limit.Gate, error) {
	c, err := loadClaimCache(ctx, tx)
	if err != nil {
		return nil, err
	}
	return c.gate(ctx, tx, queue)
}

// countStart counts the claim of a job of a queue with limits against its rates.
func countStart(ctx context.Context, tx *ledger.Tx, j projection.Job) error {
	gate, err := gateOf(ctx, tx, j.Queue)
	if err != nil {
		return err
	}
	return gate.Start(ctx, tx, j.Group, event.Micros(tx.At()))
}

// add adds a queued job; false if its lane cannot be read.
func (c *claimCache) add(lane string, runAt int64, id string) bool {
	queue, _, _ := strings.Cut(lane, " ")
	if base, _, ok := group.Split(lane); ok {
		c.grouped[group.QueueOf(base)] = true
		return true
	}
	list, ok := c.queues[queue]
	if !ok {
		return true
	}
	i, ok := slices.BinarySearchFunc(list, lane,
		func(l *laneCursor, lane string) int { return cmp.Compare(l.lane, lane) })
	switch {
	case !ok:
		l, err := newLaneCursor(lane, runAt, id)
		if err != nil {
			return false
		}
		c.queues[queue] = slices.Insert(list, i, l)
	case cmp.Or(cmp.Compare(runAt, list[i].runAt), cmp.Compare(id, list[i].id)) <= 0:
		list[i].moveTo(runAt, id)
	}
	return true
}

// lanes returns the lanes of a queue with jobs in them, and the first that cannot be read, if any.
func (c *claimCache) lanes(ctx context.Context, tx *ledger.Tx, queue string) (list []*laneCursor, damaged,
	err error) {
	if list, ok := c.queues[queue]; ok && countDrained(list) <= maxDrainedLanes {
		return list, nil, nil
	}
	delete(c.queues, queue)
	list, has, damaged, err := listLanes(ctx, tx, queue)
	c.grouped[queue] = has.groups
	switch {
	case err != nil:
	case has.limits:
		_, err = c.gate(ctx, tx, queue)
	case c.gates[queue] == nil:
		c.gates[queue] = &limit.Gate{Limit: limit.Limit{Queue: queue}}
	}
	if err == nil && damaged == nil && len(list) > 0 { // an empty queue may be a paused one
		c.queues[queue] = list
	}
	return list, damaged, err
}

func countDrained(list []*laneCursor) (n int) {
	for _, l := range list {
		if l.drained {
			n++
		}
	}
	return n
}

// WarmupQueries implements ledger.CachedValue: what was queued since, and the next jobs of the lane of the
// speculation. If nothing is queued by others, an emptied lane stays empty.
func (c *claimCache) WarmupQueries(after int64, alone bool) (queries []ledger.WarmupQuery) {
	if !alone {
		queries = append(queries, ledger.WarmupQuery{Query: queuedSince,
			Args: []any{after, after + maxMissedEvents}})
	}
	if s := &c.speculation; s.lane != nil && (s.busy || !alone) {
		s.runAt, s.id, s.taken = s.lane.runAt, s.lane.id, s.lane.taken
		s.latest = event.Micros(s.now.Add(time.Since(s.wall) + time.Second))
		queries = append(queries, ledger.WarmupQuery{Query: laneQuery(s.taken), Args: []any{s.lane.lane, s.runAt,
			s.id, s.latest, s.limit}})
	}
	return queries
}

// speculate notes where the next claim is likely to look, given the lanes of a search that found all there
// was.
func (c *claimCache) speculate(lanes []*laneCursor, limit int, now time.Time) {
	for _, l := range lanes {
		if l.drained && (c.speculation.lane == nil || l.compare(c.speculation.lane) < 0) {
			c.speculation = speculation{lane: l, limit: limit, now: now, wall: time.Now()}
		}
	}
}

// speculative returns the rows of the speculation if they are what l is about to read; else nil.
func (c *claimCache) speculative(tx *ledger.Tx, l *laneCursor, now time.Time) *ledger.PendingQuery {
	s := &c.speculation
	if l != s.lane || l.taken != s.taken || l.runAt != s.runAt || l.id != s.id ||
		event.Micros(now) > s.latest {
		return nil
	}
	return tx.Cache().Prefetched(laneQuery(s.taken))
}
