package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/row"
)

var insertEvent = engine.NewOrderedInsert("events",
	engine.Types{"ulid": engine.Text, "digest": engine.Bytes, "data": engine.JSON}, row.Names[:]...)

// Next returns the pos that the next appended event must have.
func (tx *Tx) Next() int64 { return tx.tail + 1 }

// Append writes events at the end of the ledger. Each has its Pos from Next and its At from Tx.At (an import
// brings its own, which must not decrease). ErrConflict when (job, seq) is taken; as with a Put, that may be
// noticed only when the buffer is sent. After an error the function cannot succeed any more.
//
// It is for the write path alone, which changes the rows of the projection in the same transaction. It is
// exported because that path is in other packages, and a test names the functions there that call it. A
// program that embeds the ledger writes through commands.Service. Events without their rows are found by
// verify.
func (tx *Tx) Append(ctx context.Context, events ...event.Event) error {
	for i := range events {
		if err := tx.append(ctx, &events[i]); err != nil {
			tx.fn.err = err // the job's row may be written already (I3)
			return err
		}
	}
	return nil
}

func (tx *Tx) append(ctx context.Context, e *event.Event) error {
	at := event.Micros(e.At)
	if e.Pos != tx.tail+1 || at < tx.tailAt {
		return fmt.Errorf("%w: event %d at %s after event %d", ErrConflict, e.Pos, event.FormatTime(e.At), tx.tail)
	}
	values, err := tx.rowOf(ctx, e)
	if err != nil {
		return err
	}
	err = tx.Insert(insertEvent, values[:]...)
	if errors.Is(err, engine.ErrConstraint) {
		return fmt.Errorf("%w: event %d, seq %d of job %d: %w", ErrConflict, e.Pos, e.Seq, e.N, err)
	}
	if err == nil {
		tx.tail, tx.tailAt = e.Pos, at
		tx.cache.appended(e.Kind())
	}
	return err
}

// rowOf returns e as the table has it, in the order of row.Names.
func (tx *Tx) rowOf(ctx context.Context, e *event.Event) (values row.Values, err error) {
	actor, err := tx.Name(ctx, e.Actor)
	if err != nil {
		return values, err
	}
	worker, err := tx.Worker(ctx, e.Worker)
	if err != nil {
		return values, err
	}
	return row.Of(e, actor, worker), nil
}

// Filter says which events to read; the zero Filter is all of them.
type Filter struct {
	Job    int64        // the job's number; 0: all
	Jobs   []int64      // the numbers of several jobs; none: all
	Kinds  []event.Kind // none: all
	Worker string       // the name of a worker, or the boot of one process of it
	Queue  string       // events of this queue and of its jobs
	Actor  string       // exactly
	After  int64        // pos greater than this
	Until  int64        // pos up to this; 0: to the end
	From   time.Time    // at or after; zero: from the beginning
	To     time.Time    // at or before; zero: to the end
	Limit  int          // at most so many; 0: no limit
	Last   bool         // with Limit: the last ones instead of the first, still in order
	Ending bool         // only the events that end a claim
	// only the events that have a seq, job by job instead of in the order of pos; without Limit
	ByJob bool
}

func (f Filter) where() (string, []any) {
	var terms []string
	var args []any
	add := func(term string, values ...any) {
		terms, args = append(terms, term), append(args, values...)
	}
	if f.Job != 0 {
		add(`e.job = ?`, f.Job)
	}
	if len(f.Jobs) > 0 {
		var in []any
		for _, n := range f.Jobs {
			in = append(in, n)
		}
		add(`e.job IN (`+strings.TrimSuffix(strings.Repeat("?,", len(in)), ",")+`)`, in...)
	}
	if f.Ending {
		f.Kinds = event.KindsThat(event.Kind.EndsClaim)
	}
	if len(f.Kinds) > 0 {
		var in []any
		for _, k := range f.Kinds {
			in = append(in, int64(k))
		}
		add(`e.kind IN (`+strings.TrimSuffix(strings.Repeat("?,", len(in)), ",")+`)`, in...)
		if !slices.ContainsFunc(f.Kinds, event.Kind.OfJob) {
			add(`e.job IS NULL AND e.seq IS NULL`) // these are few and adjacent in the index on (job, seq)
		} else if f.Job == 0 && len(f.Jobs) == 0 && slices.Min(f.Kinds) > event.RareAfter {
			add(isRare) // so that the index rare_events applies
		}
	}
	if f.ByJob {
		add(`e.seq > 0`)
	}
	if f.Worker != "" {
		add(`e.worker IN (SELECT n FROM workers WHERE worker = ? OR boot = ?)`, f.Worker, f.Worker)
	}
	if f.Queue != "" {
		add(`(EXISTS (SELECT 1 FROM events q WHERE q.pos = e.job AND q.data ->> 'queue' = ?)
    OR e.job IS NULL AND e.data ->> 'queue' = ?)`, f.Queue, f.Queue)
	}
	if f.Actor != "" {
		add(`e.actor = (SELECT n FROM names WHERE name = ?)`, f.Actor)
	}
	if f.After > 0 {
		add(`e.pos > ?`, f.After)
	}
	if f.Until > 0 {
		add(`e.pos <= ?`, f.Until)
	}
	if !f.From.IsZero() {
		add(`e.at >= ?`, event.Micros(f.From))
	}
	if !f.To.IsZero() {
		add(`e.at <= ?`, event.Micros(f.To))
	}
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// Events yields the events that f selects in the order of pos. An error ends the sequence.
func (tx *Tx) Events(ctx context.Context, f Filter) iter.Seq2[event.Event, error] {
	return tx.eventsAfter(ctx, f, make(claims))
}

// EventAt returns the event at pos, if it is in the ledger.
func (tx *Tx) EventAt(ctx context.Context, pos int64) (e event.Event, found bool, err error) {
	for e, err = range tx.Events(ctx, Filter{After: pos - 1, Until: pos}) {
		return e, err == nil, err
	}
	return e, false, nil
}

// eventsAfter is Events for one of several reads along the ledger, which share what they know of the claims.
func (tx *Tx) eventsAfter(ctx context.Context, f Filter, known claims) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		where, args := f.where()
		query := `SELECT ` + row.Columns + ` FROM events e` + where
		if f.ByJob {
			query += ` ORDER BY e.job, e.seq` // as the index has them: nothing is sorted
		} else {
			query += ` ORDER BY e.pos`
		}
		if f.Limit > 0 {
			if f.Last {
				query += ` DESC`
			}
			query += ` LIMIT ?`
			args = append(args, f.Limit)
			if f.Last {
				query = `SELECT * FROM (` + query + `) AS last ORDER BY pos`
			}
		}
		rows, err := tx.Query(ctx, query, args...)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			e, err := tx.scan(ctx, rows, known)
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(event.Event{}, err)
		}
	}
}

// claims remembers, per job that a read has come across, its id and its latest claim.
type claims map[int64]latestClaim

type latestClaim struct {
	id      event.JobID
	attempt int
	token   string
}

// maxClaims bounds what a long read keeps; beyond it, what is needed again is looked up again.
const maxClaims = 100_000

func (tx *Tx) scan(ctx context.Context, rows *Rows, known claims) (event.Event, error) {
	var e event.Event
	r := row.Read(rows.Values())
	err := r.Decode(ctx, tx, &e)
	if err != nil {
		return e, &EventError{r.Pos, err}
	}
	if e.N == 0 {
		return e, nil
	}
	c, ok := known[e.N]
	if e.Kind() == event.KindEnqueued {
		c, ok = latestClaim{id: event.JobID(r.ULID)}, true
	}
	filteredOut := e.Attempt > c.attempt && e.Kind().TokenOfClaim() // its claim was
	if !ok || filteredOut {
		if c, err = tx.latestClaim(ctx, e.N, e.Pos); err != nil {
			return e, &EventError{e.Pos, err}
		}
	}
	switch k := e.Kind(); {
	case k.StoresToken():
		if e.Token = r.ULID; k == event.KindClaimed {
			c.attempt, c.token = e.Attempt, e.Token
		}
	case k.TokenOfClaim() && e.Attempt != 0 && e.Attempt == c.attempt:
		e.Token = c.token
	}
	e.Job = c.id
	if e.To.Final() || len(known) >= maxClaims {
		delete(known, e.N)
	} else {
		known[e.N] = c
	}
	return e, nil
}

var latestClaimOf = event.SQL(`SELECT coalesce(q.ulid, ''), coalesce(c.attempt, 0), coalesce(c.ulid, '')
FROM events q LEFT JOIN events c ON c.pos =
    (SELECT x.pos FROM events x WHERE x.job = ?1 AND x.seq IS NOT NULL AND x.pos < ?2 AND x.kind = {claimed}
     ORDER BY x.seq DESC LIMIT 1)
WHERE q.pos = ?1`)

// latestClaim looks up the id of job n and its last claim before pos.
func (tx *Tx) latestClaim(ctx context.Context, n, pos int64) (c latestClaim, err error) {
	_, err = tx.first(ctx, []any{&c.id, &c.attempt, &c.token},
		latestClaimOf, n, pos)
	return c, err
}

var (
	isRare     = event.SQL(`e.kind > {rareAfter}`)
	lastOf     = event.SQL(`SELECT coalesce(max(pos), 0) FROM events WHERE kind = ? AND kind > {rareAfter}`)
	enqueuedAs = event.SQL(`SELECT pos FROM events WHERE kind = {enqueued} AND ulid = ?`)
)

// LastOf returns the pos of the last event of a kind after [event.RareAfter]; 0 if there is none. It costs
// one search in the index rare_events.
func (tx *Tx) LastOf(ctx context.Context, k event.Kind) (int64, error) {
	if err := tx.flush(); err != nil {
		return 0, err
	}
	return tx.number(ctx, lastOf, int64(k))
}

// Number returns the number of the job with this id, from its enqueued event; 0 if there is none. It does not
// need the projection, but reads every enqueued event: for recovery, not for the hot path.
func (tx *Tx) Number(ctx context.Context, id event.JobID) (int64, error) {
	if err := tx.flush(); err != nil {
		return 0, err
	}
	return tx.number(ctx, enqueuedAs, string(id))
}

// PosAt returns the last pos whose at is not after t; 0 if there is none. at never decreases along pos (I7),
// so this is a binary search. Events that have left the ledger do not count.
func (tx *Tx) PosAt(ctx context.Context, t time.Time) (int64, error) {
	if err := tx.flush(); err != nil {
		return 0, err
	}
	low := int64(0)
	high, err := tx.Tail(ctx)
	for err == nil && low < high {
		mid := low + (high-low+1)/2
		var pos, at int64
		if pos, at, err = tx.firstFrom(ctx, mid); at <= event.Micros(t) {
			low = max(pos, mid)
		} else {
			high = mid - 1
		}
	}
	return low, err
}

// firstFrom returns the first event from pos on.
func (tx *Tx) firstFrom(ctx context.Context, from int64) (pos, at int64, err error) {
	_, err = tx.first(ctx, []any{&pos, &at},
		`SELECT pos, at FROM events WHERE pos >= ? ORDER BY pos LIMIT 1`, from)
	return pos, at, err
}
