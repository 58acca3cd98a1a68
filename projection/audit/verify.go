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
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit/differ"
	"jobledger/projection/defaults"
	"jobledger/projection/fold"
	"jobledger/projection/internal/table"
	"jobledger/projection/schedules"
)

// Verify folds every event and compares the result with the tables, row by row. progress, if not nil, is
// called now and then with the number of events done and their total. An error means that the check could not
// be carried out; defects are Findings.
func Verify(ctx context.Context, tx *ledger.Tx, progress func(done, total int64)) (Verified, error) {
	return VerifySince(ctx, tx, 0, progress)
}

// VerifySince is Verify of the events after the one at since, up to which an earlier Verify found everything
// in order. A job that goes on is folded from its first event, and only the rows that the new events concern
// are compared. Other rows, their bodies and the structure of the file are not checked again.
func VerifySince(ctx context.Context, tx *ledger.Tx, since int64, progress func(done, total int64)) (
	Verified, error) {
	v := newVerifier(tx, since)
	err := v.run(ctx, v.structure(ctx), progress)
	v.findLost()
	return v.Verified, err
}

// VerifyWindow is VerifySince of the events up to the one at until, and of the rows of the jobs that they
// concern, whose other events it folds too. It costs these events and jobs, whatever comes before and after.
func VerifyWindow(ctx context.Context, tx *ledger.Tx, since, until int64, progress func(done, total int64)) (
	Verified, error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return Verified{}, err
	}
	if since == 0 && until >= tail {
		return Verify(ctx, tx, progress)
	}
	v := newVerifier(tx, since)
	v.bound, v.concerned, v.incomplete = min(until, tail), make(map[int64]bool), true
	if v.bound > since {
		err = v.run(ctx, v.structure(ctx), progress)
	}
	v.findLost()
	return v.Verified, err
}

// progressEvents is after how many events progress is called.
const progressEvents = 10_000

type verifier struct {
	Verified
	tx        *ledger.Tx // of the step
	steps     steps
	fold      *fold.Fold
	compared  *differ.Jobs
	last      event.Event
	started   map[event.Worker]starts // the worker processes that have not stopped
	shared    map[string]*sharedBoot  // the boot ids of processes in different places
	touched   map[int64]bool          // jobs that began before since and go on
	bound     int64                   // the last event to check; 0: the tail
	concerned map[int64]bool          // with a bound: the jobs of the events so far
	bodies    storedBodies
	frames    *differ.Keyframes // nil with a bound
	evidence  *evidence         // nil with a bound
	keys      keyHolders
	defaults  defaults.Set

	horizon    int64 // the last event that may have left the ledger; 0: none has
	removal    projection.Removal
	whole      bool  // nothing has left yet, whatever the events say: a history that is taken in
	began      int64 // the last removed event when the check began
	gap        bool  // before the event that is checked, others have left
	archivedTo int64 // the last event that is in a segment, by the events so far
	// the segments, by their ends, whose parts no event so far names
	undescribed map[int64]bool

	lost       []Finding // bodies that are missing without having been erased: up to maxFindings of them
	lostCount  int64     // all of them
	incomplete bool      // bodies were missing in what was imported
}

func newVerifier(tx *ledger.Tx, since int64) *verifier {
	f := fold.New()
	v := &verifier{Verified: Verified{Since: since, Until: since}, tx: tx, fold: f,
		compared: differ.NewJobs(tx, f),
		shared:   make(map[string]*sharedBoot),
		keys:     make(keyHolders), defaults: make(defaults.Set), undescribed: make(map[int64]bool),
		started: make(map[event.Worker]starts), touched: make(map[int64]bool), incomplete: since > 0}
	return v
}

func (v *verifier) find(f Finding) {
	if len(v.Findings) < maxFindings {
		v.Findings = append(v.Findings, f)
	}
}

// findLost reports the missing bodies that no import has explained.
func (v *verifier) findLost() {
	for _, f := range v.lost {
		v.find(f)
	}
}

// run checks everything. structure waits for the check of the file.
func (v *verifier) run(ctx context.Context, structure func() ([]string, error),
	progress func(done, total int64)) error {
	err := v.inStep(ctx, func() error { return v.guards(ctx) })
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
	err := v.inStep(ctx, func() error { return v.begin(ctx) })
	if err == nil && v.bound == 0 && !v.Stopped {
		err = v.inStep(ctx, func() error { return cmp.Or(v.beginKeyframes(ctx), v.beginEvidence(ctx)) })
	}
	if err == nil && v.bound > 0 {
		err = v.inStep(ctx, func() error { return v.beginArchive(ctx, nil) })
	}
	for done := false; err == nil && !done && !v.Stopped; {
		err = v.inStep(ctx, func() (err error) {
			done, err = v.step(ctx, progress)
			return err
		})
	}
	return err
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
		v.shared[boot] = &sharedBoot{finding: len(v.Findings)}
		v.find(Finding{Code: FindPlace,
			Detail: fmt.Sprintf("processes on different hosts, or with different pids, have the boot %q", boot)})
	}
	if err == nil && !slices.ContainsFunc(problems,
		func(p string) bool { return p == "table presence is missing" }) {
		err = v.presence(ctx)
	}
	return err
}

// begin restores the state after the events up to since.
func (v *verifier) begin(ctx context.Context) error {
	if err := v.findHorizon(ctx); err != nil {
		return err
	}
	v.fold.Load = func(n, pos int64) (projection.Job, error) {
		if n > 0 && n <= v.Since {
			v.touched[n] = true
		}
		return fold.JobBefore(ctx, v.tx, n, pos)
	}
	if v.Since == 0 {
		if v.bound == 0 {
			v.fold.Deps = differ.NewDependencies(ctx, v.fold, v.horizon, func() *ledger.Tx { return v.tx })
		}
		return v.first(ctx)
	}
	last, found, err := v.tx.EventAt(ctx, v.Since)
	if err != nil {
		return v.stop(v.Since, err)
	}
	if v.last = last; !found {
		v.find(Finding{Code: FindGap, Pos: v.Since, Detail: "this event had been verified, and is not there"})
		v.Stopped = true
		return nil
	}
	queues, err := projection.QueuesAsOf(ctx, v.tx, projection.Moment{Pos: v.Since})
	if err != nil {
		return v.stop(v.Since, err)
	}
	for _, q := range queues {
		v.fold.Queues[q.Name] = q
	}
	if v.fold.Schedules, err = schedules.AsOf(ctx, v.tx, v.Since); err != nil {
		return v.stop(v.Since, err)
	}
	if err := v.beginLimits(ctx); err != nil {
		return v.stop(v.Since, err)
	}
	if v.defaults, err = defaults.AsOf(ctx, v.tx, v.Since); err != nil {
		return v.stop(v.Since, err)
	}
	kinds := []event.Kind{event.KindWorkerStarted, event.KindWorkerStopped}
	for e, err := range v.tx.Events(ctx, ledger.Filter{Kinds: kinds, Until: v.Since}) {
		if err != nil {
			return v.stop(v.Since, err)
		}
		v.workers(&e)
	}
	return nil
}

// first reports events before pos 1.
func (v *verifier) first(ctx context.Context) error {
	var pos sql.NullInt64
	err := table.ScanOne(ctx, v.tx, `SELECT min(pos) FROM events`, []any{&pos})
	if pos.Valid && pos.Int64 < 1 {
		v.find(Finding{Code: FindGap, Pos: pos.Int64,
			Detail: fmt.Sprintf("there is an event %d, and the first one is 1", pos.Int64)})
		v.Stopped = true
	}
	return err
}

// stop reports an event that cannot be read or folded. Other errors stay errors.
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

// events checks the events from where the last step ended; whole is false if the step is over before the last
// of them.
func (v *verifier) events(ctx context.Context, progress func(done, total int64)) (whole bool, err error) {
	tail, err := v.tx.Tail(ctx)
	if err != nil {
		return false, err
	}
	stop, err := v.openBodies(ctx)
	defer stop()
	if err != nil {
		return false, err
	}
	if v.bound > 0 {
		tail = v.bound
	}
	for batch, err := range v.tx.Scan(ctx, ledger.Scan{After: v.Until, Until: v.bound, Strict: true}) {
		if err != nil {
			return false, v.stop(v.last.Pos+1, err)
		}
		for i := range batch {
			if v.steps.over(v.Events) {
				return false, nil
			}
			if err := v.event(ctx, &batch[i]); err != nil || v.Stopped {
				return false, err
			}
		}
		if progress != nil && (v.Events-v.steps.reported >= progressEvents || v.Until >= tail) {
			v.steps.reported = v.Events
			progress(v.Events, tail-v.Since)
		}
	}
	v.Jobs = v.fold.Jobs + int64(len(v.touched))
	if v.bound > 0 {
		return true, cmp.Or(v.unclaimed(v.bound+1), v.importedLater(ctx))
	}
	return true, nil
}

func (v *verifier) event(ctx context.Context, s *ledger.Scanned) error {
	e := &s.Event
	j, err := v.fold.Before(e)
	if err != nil {
		return v.stop(e.Pos, err)
	}
	fold.CompleteScanned(j, e)
	v.gap = e.Pos != v.last.Pos+1 && e.Pos-1 <= v.horizon
	if e.Pos != v.last.Pos+1 && !v.gap {
		v.find(Finding{Code: FindGap, Pos: e.Pos, Detail: fmt.Sprintf("the event before it is %d", v.last.Pos)})
	}
	if e.At.Before(v.last.At) {
		v.at(e, FindClock, "at %s, after %s", event.FormatTime(e.At), event.FormatTime(v.last.At))
	}
	found := len(v.Findings)
	if s.NonCanonical != "" {
		v.at(e, FindForm, "the column %s is not as %s is written", s.NonCanonical, e.Kind())
	}
	if err := e.Validate(); err != nil {
		v.at(e, FindForm, "%v", err)
	}
	if len(v.shared) > 0 {
		v.placeShared(e)
	}
	if err := v.rules(ctx, j, e); err != nil {
		return v.stop(e.Pos, err)
	}
	had := hasKey(j)
	if err := v.fold.Add(j, e); err != nil {
		v.Findings = v.Findings[:found] // its other defects follow from this one
		v.at(e, FindIllegal, "%v", err)
		v.Stopped = true
		return nil
	}
	if v.fold.Wrong != "" {
		v.at(e, FindDependency, "%s", v.fold.Wrong)
	}
	v.key(e, j, had)
	if err := v.body(ctx, e, j); err != nil {
		return v.stop(e.Pos, err)
	}
	switch {
	case j != nil && v.bound > 0:
		v.concerned[j.N] = true
		if j.State.Final() {
			delete(v.fold.Open, j.N)
		}
	case j != nil && j.State.Final():
		if err := v.compared.End(ctx, j.N); err != nil {
			return err
		}
	}
	v.last, v.Until = *e, e.Pos
	v.Events++
	if err := v.addLeaf(ctx, e); err != nil {
		return err
	}
	return v.frames.Add(ctx, e, j)
}

// at reports a defect of e.
func (v *verifier) at(e *event.Event, code, format string, args ...any) {
	v.find(Finding{Code: code, Pos: e.Pos, Job: e.Job, Detail: fmt.Sprintf(format, args...)})
}

// end reports bodies after the last event, and events that were cut off at the end, where the database
// remembers the highest pos that there ever was.
func (v *verifier) end(ctx context.Context) error {
	highest, known, err := v.tx.Highest(ctx)
	if err != nil {
		return err
	}
	if known && highest != v.last.Pos {
		v.find(Finding{Code: FindGap, Pos: v.last.Pos,
			Detail: fmt.Sprintf("this is the last event, but there have been %d", highest)})
	}
	stop, err := v.openBodies(ctx)
	defer stop()
	return cmp.Or(err, v.unclaimed(math.MaxInt64))
}
