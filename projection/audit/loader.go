package audit

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
	"jobledger/projection/limit"
	"jobledger/projection/rebuild"
	"jobledger/projection/schedules"
)

// Loader writes a history into an empty ledger, event by event, and with End the tables that it adds up to.
// It holds open jobs in memory, up to a bound; ended jobs and those beyond the bound are written as rows.
type Loader struct {
	tx       *ledger.Tx
	fold     *fold.Fold
	open     map[event.JobID]int64    // the numbers of the jobs in fold.open
	stored   map[int64]projection.Job // of these, the ones that have a row, as it stands
	events   int64
	archived int64 // the last event that is in a segment
	sealed   bool  // seal 1 was added
}

// maxLoading bounds the jobs in memory; a variable for the tests only.
var maxLoading = 100_000

const loadFlush = 512 // events between two flushes of the buffer

// NewLoader returns a Loader for tx, whose ledger must be empty.
func NewLoader(tx *ledger.Tx) *Loader {
	l := &Loader{tx: tx, fold: fold.New(), open: make(map[event.JobID]int64),
		stored: make(map[int64]projection.Job)}
	l.fold.Deps = &deps.Fold{Find: l.findDependency}
	return l
}

// Continue goes on in another transaction of the same ledger.
func (l *Loader) Continue(tx *ledger.Tx) { l.tx = tx }

// saved is what a Loader cannot read from the tables.
type saved struct {
	Queues map[string]projection.Queue
	Limits limit.Set
	Groups map[string]fold.WaitingGroup
	Deps   *deps.Fold
}

// Resume returns a Loader for a ledger that another one has ended, and then saved, or for an empty one.
func Resume(ctx context.Context, tx *ledger.Tx) (*Loader, error) {
	l := NewLoader(tx)
	if _, err := tx.Exec(`CREATE TABLE IF NOT EXISTS loading (state BLOB NOT NULL) STRICT`); err != nil {
		return nil, err
	}
	var state []byte
	if err := table.ScanOne(ctx, tx, `SELECT state FROM loading`, []any{&state}); err != nil || state == nil {
		return l, err
	}
	f := l.fold
	err := gob.NewDecoder(bytes.NewReader(state)).Decode(&saved{f.Queues, f.Limits, f.Groups, f.Deps})
	if err != nil {
		return nil, fmt.Errorf("%w: what its loader saved: %w", ledger.ErrDamaged, err)
	}
	set, err := schedules.List(ctx, tx)
	for _, s := range set {
		f.Schedules[s.Spec.Name] = s
	}
	if err != nil {
		return nil, err
	}
	last, err := projection.LastSegment(ctx, tx)
	l.archived = last.Hi
	return l, err
}

// Save keeps what Resume needs, in a table of its own. It is called after End.
func (l *Loader) Save() error {
	var state bytes.Buffer
	f := l.fold
	if err := gob.NewEncoder(&state).Encode(saved{f.Queues, f.Limits, f.Groups, f.Deps}); err != nil {
		return err
	}
	if _, err := l.tx.Exec(`DELETE FROM loading`); err != nil {
		return err
	}
	_, err := l.tx.Exec(`INSERT INTO loading VALUES (?)`, state.Bytes())
	return err
}

// findDependency finds a job of the history for deps.Fold.
func (l *Loader) findDependency(id event.JobID, pos int64) (int64, event.State, error) {
	if n, ok := l.open[id]; ok {
		return n, l.fold.Open[n].State, nil
	}
	j, ok, err := projection.Get(context.Background(), l.tx, id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the event %d names the job %s, which was not enqueued before", projection.ErrIllegal,
			pos, id)
	}
	return j.N, j.State, err
}

// Events returns how many events were added.
func (l *Loader) Events() int64 { return l.events }

// Jobs returns how many jobs were added.
func (l *Loader) Jobs() int64 { return l.fold.Jobs }

// Add appends the next event and its body. It assigns Pos and N, and where an event of a claim has only the
// worker's name, it completes it from the claim. It returns projection.ErrIllegal if the event cannot follow.
func (l *Loader) Add(ctx context.Context, line event.Line) error {
	e := line.Event
	e.Pos = l.tx.Next()
	j, err := l.resolve(ctx, &e)
	if err != nil {
		return err
	}
	if err := l.identify(ctx, j, &e); err != nil {
		return err
	}
	if err := l.fold.Add(j, &e); err != nil {
		return err
	}
	if j != nil && (j.State.Final() || len(l.fold.Open) > maxLoading) {
		if err := l.put(ctx, *j); err != nil {
			return err
		}
	}
	if line.Body != nil {
		if err := l.tx.PutBody(e.Pos, line.Salt, line.Body); err != nil {
			return err
		}
	}
	if err := l.tx.Append(ctx, e); err != nil {
		return err
	}
	if b, ok := e.Body.(*event.Archived); ok && b.Lo == l.archived && b.Hi < e.Pos {
		if err := projection.AddSegment(l.tx, b, e.Pos); err != nil {
			return err
		}
		l.archived = b.Hi
	}
	if b, ok := e.Body.(*event.Sealing); ok && b.Sealed && !l.sealed {
		l.sealed = true
		if err := tree.SealIn(ctx, l.tx, e.At); err != nil {
			return err
		}
	}
	if l.events++; l.events%loadFlush == 0 {
		return l.tx.Flush()
	}
	return nil
}

// resolve sets e.N and returns the job of e as it is in the fold; nil if e concerns none.
func (l *Loader) resolve(ctx context.Context, e *event.Event) (*projection.Job, error) {
	n, known := l.open[e.Job]
	switch {
	case e.Kind() == event.KindEnqueued && known:
		return nil, fmt.Errorf("%w: job %s is enqueued twice", projection.ErrIllegal, e.Job)
	case e.Kind() == event.KindEnqueued:
		e.N = e.Pos
		l.open[e.Job] = e.N
		return l.fold.Before(e)
	case e.Job == "":
		return nil, nil
	case known:
		e.N = n
		return l.fold.Before(e)
	}
	before, ok, err := projection.Get(ctx, l.tx, e.Job)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s of job %s, which was not enqueued before", projection.ErrIllegal, e.Kind(), e.Job)
	}
	if err != nil {
		return nil, err
	}
	e.N = before.N
	l.open[e.Job], l.stored[e.N], l.fold.Open[e.N] = e.N, before, &before
	return &before, nil
}

// identify completes e's worker with its process.
func (l *Loader) identify(ctx context.Context, before *projection.Job, e *event.Event) error {
	name := e.Worker.Name
	switch {
	case e.Kind() == event.KindClaimed || e.Kind() == event.KindTakenOver || before == nil:
		return nil
	case e.Attempt == 0 && name != "":
		return fmt.Errorf("%w: %s names the worker %q but no attempt", projection.ErrIllegal, e.Kind(), name)
	case e.Attempt == 0:
		return nil
	case e.Kind() != event.KindRefused && !e.Kind().AfterClaim():
		if name == before.Worker.Name && e.Attempt == before.Attempt {
			e.Worker = before.Worker
		}
		return nil // Evolve judges
	}
	if e.Attempt == before.Attempt && before.State.Held() && e.Token == before.Token {
		e.Worker = before.Worker
		return nil
	}
	claim, err := lastClaim(ctx, l.tx, e.N, l.tx.Next()-1, claimIn(e))
	if err != nil {
		return err
	}
	if claim.Attempt == e.Attempt && claim.Worker.Name == name {
		e.Worker = claim.Worker
		return nil
	}
	return fmt.Errorf("%w: %s names attempt %d by %q, but with this token there is none",
		projection.ErrIllegal, e.Kind(), e.Attempt, name)
}

// put writes the row of j and removes the job from memory.
func (l *Loader) put(ctx context.Context, j projection.Job) error {
	if err := projection.PutRow(ctx, l.tx, l.stored[j.N], j); err != nil {
		return l.explain(ctx, j, err)
	}
	delete(l.open, j.ID)
	delete(l.stored, j.N)
	delete(l.fold.Open, j.N)
	return nil
}

// explain finds the job that j collides with: ids are unique, and keys within a queue. Collisions are noticed
// here once writes are sent one by one, which happens after a bulk write has failed.
func (l *Loader) explain(ctx context.Context, j projection.Job, err error) error {
	if other, ok, getErr := projection.Get(ctx, l.tx, j.ID); getErr == nil && ok && other.N != j.N {
		return collision(other.N, j.N, "the jobs of events %d and %d have the same id %s",
			other.N, j.N, j.ID)
	}
	if j.Key == "" || j.KeyFree {
		return err
	}
	if other, ok, getErr := projection.GetByKey(ctx, l.tx, j.Queue, j.Key); getErr == nil && ok &&
		other.N != j.N {
		return collision(other.N, j.N, "the jobs of events %d and %d have the same key %q in the queue %s",
			other.N, j.N, j.Key, j.Queue)
	}
	return err
}

// CollisionError is an ErrIllegal: two jobs of a history have the same id, or the same key.
type CollisionError struct {
	Pos  int64 // of the later one's first event
	text string
}

func collision(one, other int64, format string, args ...any) error {
	return &CollisionError{max(one, other), fmt.Sprintf(format, args...)}
}

// Error says which two.
func (e *CollisionError) Error() string { return fmt.Sprintf("%v: %s", projection.ErrIllegal, e.text) }

// Unwrap returns projection.ErrIllegal.
func (e *CollisionError) Unwrap() error { return projection.ErrIllegal }

// End writes the rows of the open jobs, the queues and the schedules.
func (l *Loader) End(ctx context.Context) error {
	l.tx.Cache().Invalidate() // rows were written without claims.Put
	for i, n := range slices.Sorted(maps.Keys(l.fold.Open)) {
		if err := l.put(ctx, *l.fold.Open[n]); err != nil {
			return err
		}
		if i%loadFlush == 0 {
			if err := l.tx.Flush(); err != nil {
				return err
			}
		}
	}
	if err := rebuild.Tables(ctx, l.tx, l.fold); err != nil {
		return err
	}
	if err := l.fold.Deps.Write(ctx, l.tx); err != nil {
		return err
	}
	return l.tx.Flush()
}

// Check verifies what was written. missing counts payloads and results that are named but absent without
// having been erased, and orphans names the queues of jobs whose payload is absent so. Neither is a finding.
func (l *Loader) Check(ctx context.Context) (findings []Finding, missing int64, orphans []string, err error) {
	return newVerifier(l.tx, 0).loaded(ctx)
}

// CheckLoaded is Loader.Check of a history that was committed, in steps.
func CheckLoaded(ctx context.Context, s *ledger.Store) (findings []Finding, missing int64, orphans []string,
	err error) {
	v := newVerifier(nil, 0)
	v.steps = steps{read: s.Read, time: stepTime, events: stepEvents}
	return v.loaded(ctx)
}

// loaded checks all but the structure of the file, which is the database's own work of this moment.
func (v *verifier) loaded(ctx context.Context) (findings []Finding, missing int64, orphans []string,
	err error) {
	v.whole = true
	err = v.inStep(ctx, func() error { return v.guards(ctx) })
	if err == nil {
		err = v.history(ctx, nil)
	}
	if err != nil || v.lostCount == 0 {
		return v.Findings, 0, nil, err
	}
	err = v.inStep(ctx, func() error {
		orphans, err = queuesWithoutPayload(ctx, v.tx)
		return err
	})
	return v.Findings, v.lostCount, orphans, err
}

// queuesWithoutPayload names the queues of jobs that lack their payload although it was not erased.
func queuesWithoutPayload(ctx context.Context, tx *ledger.Tx) (names []string, err error) {
	return table.Column[string](tx.Query(ctx, `SELECT DISTINCT n.name FROM jobs j JOIN names n ON n.n = j.queue
WHERE NOT EXISTS (SELECT 1 FROM bodies b
    WHERE b.pos = coalesce(CAST(j.more ->> 'payload_at' AS bigint), j.n))
AND j.more ->> 'erased' IS NULL ORDER BY 1`))
}
