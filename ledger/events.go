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
		if tx.cache != nil {
			delete(tx.cache.rare, e.Kind())
		}
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
	addIn := func(column string, n int, at func(i int) int64) {
		add(column + ` IN (` + strings.TrimSuffix(strings.Repeat("?,", n), ",") + `)`)
		for i := range n {
			args = append(args, at(i))
		}
	}
	if f.Job != 0 {
		add(`e.job = ?`, f.Job)
	}
	if len(f.Jobs) > 0 {
		addIn(`e.job`, len(f.Jobs), func(i int) int64 { return f.Jobs[i] })
	}
	if f.Ending {
		f.Kinds = event.KindsThat(event.Kind.EndsClaim)
	}
	if len(f.Kinds) > 0 {
		addIn(`e.kind`, len(f.Kinds), func(i int) int64 { return int64(f.Kinds[i]) })
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
	return tx.eventsAfter(ctx, f, make(row.Latest))
}

// OneEvent returns the first event that f selects, or with Last the last one, if there is any.
func (tx *Tx) OneEvent(ctx context.Context, f Filter) (e event.Event, found bool, err error) {
	f.Limit = 1
	for e, err = range tx.Events(ctx, f) {
		return e, err == nil, err
	}
	return e, false, nil
}

// EventAt returns the event at pos, if it is in the ledger.
func (tx *Tx) EventAt(ctx context.Context, pos int64) (e event.Event, found bool, err error) {
	return tx.OneEvent(ctx, Filter{After: pos - 1, Until: pos})
}

// eventsAfter is Events for one of several reads along the ledger, which share what they know of the claims.
func (tx *Tx) eventsAfter(ctx context.Context, f Filter, known row.Latest) iter.Seq2[event.Event, error] {
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

func (tx *Tx) scan(ctx context.Context, rows *Rows, known row.Latest) (e event.Event, err error) {
	r := row.Read(rows.Values())
	if err = r.Decode(ctx, tx, &e); err == nil {
		err = known.Complete(ctx, &r, &e, tx.latestClaim)
	}
	if err != nil {
		err = &EventError{r.Pos, err}
	}
	return e, err
}

var latestClaimOf = event.SQL(`SELECT coalesce(q.ulid, ''), coalesce(c.attempt, 0), coalesce(c.ulid, '')
FROM events q LEFT JOIN events c ON c.pos =
    (SELECT x.pos FROM events x WHERE x.job = ?1 AND x.seq IS NOT NULL AND x.pos < ?2 AND x.kind = {claimed}
     ORDER BY x.seq DESC LIMIT 1)
WHERE q.pos = ?1`)

// latestClaim looks up the id of job n and its last claim before pos.
func (tx *Tx) latestClaim(ctx context.Context, n, pos int64) (c row.LatestClaim, err error) {
	_, err = tx.first(ctx, []any{&c.ID, &c.Attempt, &c.Token}, latestClaimOf, n, pos)
	return c, err
}

var isRare = event.SQL(`e.kind > {rareAfter}`)
