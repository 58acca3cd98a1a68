package audit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Finding is one thing that Verify found wrong.
type Finding struct {
	Code   string       `json:"code"`            // V01…, one per check
	Pos    int64        `json:"pos,omitempty"`   // the event, where one is to blame
	Job    ledger.JobID `json:"job,omitempty"`   // the job, where one is concerned
	Field  string       `json:"field,omitempty"` // the column that differs
	Detail string       `json:"detail"`
}

// The checks of Verify.
const (
	FindStructure  = "V01" // the database's own integrity check
	FindGuard      = "V02" // a table, index, trigger or view is missing or altered
	FindGap        = "V03" // pos is not dense
	FindClock      = "V04" // at decreases along pos
	FindDamaged    = "V05" // an event cannot be read
	FindIllegal    = "V06" // an event cannot follow on what was before: seq, transition, owner, token, attempt
	FindBody       = "V07" // a payload or result is not what its event says, or is missing without having been erased or left out of an import
	FindDiffers    = "V08" // a row of jobs differs from the fold of the events
	FindMissing    = "V09" // a job has no row
	FindExtra      = "V10" // a row has no job
	FindQueue      = "V11" // a row of queues differs from the fold of the events
	FindEarly      = "V12" // a claim before run_at, or from a paused queue
	FindReclaim    = "V13" // a reclaim before the lease's end, or with facts that are not the job's
	FindTooOften   = "V14" // a failure beyond max_attempts was to be retried, or a reclaim before that was not
	FindForm       = "V15" // an event that can be read, but that no command writes so: its columns, its fields, their values
	FindRefused    = "V16" // a refused write that does not point at a claim that was over, or that was refused before
	FindPlace      = "V17" // the boot of one worker process in two places
	FindUnfit      = "V18" // a worker that claims what it did not start for (queue, version, capabilities), or stops without having started
	FindTime       = "V19" // a lease end or a time to come that the rules do not give
	FindCount      = "V20" // what was erased, rebuilt, imported or restored is counted otherwise than it was
	FindStopped    = "V21" // the end of a command whose claim was not lost, or not for that reason, or that had stopped before
	maxFindings    = 1000  // then Verify stops looking
	progressEvents = 10_000
)

// Verified says what was checked.
type Verified struct {
	Since    int64 // the events behind this one were checked; 0: all
	Until    int64 // up to this one
	Events   int64
	Jobs     int64 // whose events these were
	Findings []Finding
	Stopped  bool // an event could not be folded: what comes after it was not checked
}

// Verify folds every event and compares what they add up to with the tables, row by row. progress, if not
// nil, is called now and then with the events done and their total. An error means that the check could not
// be carried out; what it found wrong are Findings.
func Verify(ctx context.Context, tx *ledger.Tx, progress func(done, total int64)) (Verified, error) {
	return VerifySince(ctx, tx, 0, progress)
}

// VerifySince is Verify of the events behind the one at since, up to which a caller has verified everything
// before. A job that goes on is judged by what its events up to there add up to, and of the rows of jobs
// those are compared that the events concern. What nobody touches since is not looked at again: neither its
// rows and bodies nor the structure of the file.
func VerifySince(ctx context.Context, tx *ledger.Tx, since int64, progress func(done, total int64)) (Verified, error) {
	v := newVerifier(tx, since)
	err := v.run(ctx, progress)
	v.findLost()
	return v.Verified, err
}

type verifier struct {
	Verified
	tx       *ledger.Tx
	fold     *fold
	compared *comparison
	last     ledger.Event
	started  map[ledger.Worker]starts // the worker processes that have not stopped
	touched  map[int64]bool           // jobs of before since that go on
	bodies   storedBodies

	lost       []Finding // bodies that are missing without having been erased: up to maxFindings of them
	lostCount  int64     // all of them
	incomplete bool      // bodies were missing in what was imported
}

func newVerifier(tx *ledger.Tx, since int64) *verifier {
	f := newFold()
	v := &verifier{Verified: Verified{Since: since, Until: since}, tx: tx, fold: f, compared: newComparison(tx, f),
		started: make(map[ledger.Worker]starts), touched: make(map[int64]bool), incomplete: since > 0}
	return v
}

func (v *verifier) find(f Finding) {
	if len(v.Findings) < maxFindings {
		v.Findings = append(v.Findings, f)
	}
}

// findLost makes findings of the bodies that are missing, which no import has explained.
func (v *verifier) findLost() {
	for _, f := range v.lost {
		v.find(f)
	}
}

func (v *verifier) run(ctx context.Context, progress func(done, total int64)) error {
	structure := v.structure(ctx)
	err := v.guards(ctx)
	if err == nil {
		err = v.history(ctx, progress)
	}
	problems, structureErr := structure()
	for i, p := range problems {
		v.Findings = slices.Insert(v.Findings, i, Finding{Code: FindStructure, Detail: p})
	}
	v.Findings = v.Findings[:min(len(v.Findings), maxFindings)]
	return cmp.Or(err, structureErr)
}

// history checks the events, and the rows against them.
func (v *verifier) history(ctx context.Context, progress func(done, total int64)) error {
	err := v.begin(ctx)
	if err == nil && !v.Stopped {
		err = v.events(ctx, progress)
	}
	if err == nil && !v.Stopped {
		err = v.rows(ctx)
	}
	return err
}

// longLedger is how long a ledger is whose structure is checked while its events are.
const longLedger = 20_000

// structure begins the database's own check, and returns what waits for it.
func (v *verifier) structure(ctx context.Context) (wait func() ([]string, error)) {
	if v.Since > 0 {
		return func() ([]string, error) { return nil, nil }
	}
	var problems []string
	check := func(tx *ledger.Tx) (err error) {
		problems, err = tx.Integrity(ctx)
		return err
	}
	ended := func() error { return nil }
	if tail, err := v.tx.Tail(ctx); err == nil && tail > longLedger {
		ended = v.tx.ReadConcurrently(ctx, check)
	} else {
		err := check(v.tx)
		ended = func() error { return err }
	}
	return func() ([]string, error) {
		err := ended()
		return problems, err
	}
}

func (v *verifier) guards(ctx context.Context) error {
	problems, err := v.tx.Guards(ctx)
	if err != nil {
		return err
	}
	slices.Sort(problems)
	for _, p := range problems {
		v.find(Finding{Code: FindGuard, Detail: p})
	}
	shared, err := sharedBoots(ctx, v.tx)
	for _, boot := range shared {
		v.find(Finding{Code: FindPlace, Detail: fmt.Sprintf("processes on different hosts, or with different pids, have the boot %q", boot)})
	}
	return err
}

// begin makes the state that the events up to since have led to.
func (v *verifier) begin(ctx context.Context) error {
	v.fold.load = func(n, pos int64) (projection.Job, error) {
		if n > 0 && n <= v.Since {
			v.touched[n] = true
		}
		return jobBefore(ctx, v.tx, n, pos)
	}
	if v.Since == 0 {
		return v.first(ctx)
	}
	for e, err := range v.tx.Events(ctx, ledger.Filter{After: v.Since - 1, Until: v.Since}) {
		if err != nil {
			return v.stop(v.Since, err)
		}
		v.last = e
	}
	if v.last.Pos == 0 {
		v.find(Finding{Code: FindGap, Pos: v.Since, Detail: "this event had been verified, and is not there"})
		v.Stopped = true
		return nil
	}
	queues, err := projection.QueuesAsOf(ctx, v.tx, projection.Moment{Pos: v.Since})
	if err != nil {
		return v.stop(v.Since, err)
	}
	for _, q := range queues {
		v.fold.queues[q.Name] = q
	}
	for e, err := range v.tx.Events(ctx, ledger.Filter{Kinds: []ledger.Kind{ledger.KindWorkerStarted, ledger.KindWorkerStopped}, Until: v.Since}) {
		if err != nil {
			return v.stop(v.Since, err)
		}
		v.workers(&e)
	}
	return nil
}

// first notices events before the first one.
func (v *verifier) first(ctx context.Context) error {
	var pos sql.NullInt64
	err := table.ScanOne(ctx, v.tx, `SELECT min(pos) FROM events`, []any{&pos})
	if pos.Valid && pos.Int64 < 1 {
		v.find(Finding{Code: FindGap, Pos: pos.Int64, Detail: fmt.Sprintf("there is an event %d, and the first one is 1", pos.Int64)})
		v.Stopped = true
	}
	return err
}

// stop makes a finding of an event that cannot be read or folded. Other errors stay errors.
func (v *verifier) stop(pos int64, err error) error {
	f := Finding{Pos: pos, Detail: err.Error()}
	unreadable, isEvent := errors.AsType[*ledger.EventError](err)
	switch {
	case errors.Is(err, projection.ErrIllegal):
		f.Code = FindIllegal
	case isEvent:
		f.Code, f.Pos = FindDamaged, unreadable.Pos
	case errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnknownKind):
		f.Code = FindDamaged
	default:
		return err
	}
	v.find(f)
	v.Stopped = true
	return nil
}

func (v *verifier) events(ctx context.Context, progress func(done, total int64)) error {
	tail, err := v.tx.Tail(ctx)
	if err != nil {
		return err
	}
	stop, err := v.openBodies(ctx)
	defer stop()
	if err != nil {
		return err
	}
	told := int64(0)
	for batch, err := range v.tx.Scan(ctx, ledger.Scan{After: v.Since, Strict: true}) {
		if err != nil {
			return v.stop(v.last.Pos+1, err)
		}
		for i := range batch {
			if err := v.event(ctx, &batch[i]); err != nil || v.Stopped {
				return err
			}
		}
		if progress != nil && (v.Events-told >= progressEvents || v.Until >= tail) {
			told = v.Events
			progress(v.Events, tail-v.Since)
		}
	}
	v.Jobs = v.fold.jobs + int64(len(v.touched))
	if err := v.end(ctx); err != nil {
		return err
	}
	return v.unclaimed(math.MaxInt64)
}

func (v *verifier) event(ctx context.Context, s *ledger.Scanned) error {
	e := &s.Event
	j, err := v.fold.before(e)
	if err != nil {
		return v.stop(e.Pos, err)
	}
	name(j, e)
	if e.Pos != v.last.Pos+1 {
		v.find(Finding{Code: FindGap, Pos: e.Pos, Detail: fmt.Sprintf("the event before it is %d", v.last.Pos)})
	}
	if e.At.Before(v.last.At) {
		v.at(e, FindClock, "at %s, after %s", ledger.FormatTime(e.At), ledger.FormatTime(v.last.At))
	}
	found := len(v.Findings)
	if s.NonCanonical != "" {
		v.at(e, FindForm, "the column %s is not as %s is written", s.NonCanonical, e.Kind())
	}
	if err := e.Shape(); err != nil {
		v.at(e, FindForm, "%v", err)
	}
	if err := v.rules(ctx, j, e); err != nil {
		return v.stop(e.Pos, err)
	}
	if err := v.fold.add(j, e); err != nil {
		v.Findings = v.Findings[:found] // what else may be wrong with it follows from this
		v.at(e, FindIllegal, "%v", err)
		v.Stopped = true
		return nil
	}
	if err := v.body(ctx, e, j); err != nil {
		return v.stop(e.Pos, err)
	}
	if j != nil && j.State.Final() {
		if err := v.compared.end(ctx, j.N); err != nil {
			return err
		}
	}
	v.last, v.Until = *e, e.Pos
	v.Events++
	return nil
}

// at is find of something that is wrong with e.
func (v *verifier) at(e *ledger.Event, code, format string, args ...any) {
	v.find(Finding{Code: code, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf(format, args...)})
}

// end notices events that were cut off at the end, where the database remembers the highest pos that there
// ever was.
func (v *verifier) end(ctx context.Context) error {
	highest, known, err := v.tx.Highest(ctx)
	if err != nil {
		return err
	}
	if known && highest != v.last.Pos {
		v.find(Finding{Code: FindGap, Pos: v.last.Pos, Detail: fmt.Sprintf("this is the last event, but there have been %d", highest)})
	}
	return nil
}
