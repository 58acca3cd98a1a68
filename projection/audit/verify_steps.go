package audit

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/audit/differ"
)

// VerifyStore is VerifySince in steps, each of which reads on a snapshot of its own, so that a long check
// keeps the database from using no space again. Events never change, so it does not matter in which step they
// are read. Rows change with their events: a row that had moved on is compared again once these events are
// folded, and in the last step, on one snapshot, nothing is left to fold or to compare. Where events have
// left the ledger meanwhile, all is read once more, on one snapshot.
func VerifyStore(ctx context.Context, s *ledger.Store, since int64, progress func(done, total int64)) (
	Verified, error) {
	return verifyStore(ctx, s, since, steps{read: s.Read, time: stepTime, events: stepEvents}, progress)
}

// VerifyPaced is VerifyStore at a quarter of the speed, for a check that no user waits for: its steps are
// shorter, and after each it rests for three times as long as that took. The structure of the file is checked
// first, not meanwhile. So it takes a quarter of one processor, except for that part.
func VerifyPaced(ctx context.Context, s *ledger.Store, since int64, progress func(done, total int64)) (
	Verified, error) {
	return verifyStore(ctx, s, since, steps{read: s.Read, time: pacedTime, events: stepEvents, rests: true},
		progress)
}

func verifyStore(ctx context.Context, s *ledger.Store, since int64, steps steps,
	progress func(done, total int64)) (Verified, error) {
	v := newVerifier(nil, since)
	v.steps = steps
	wait := v.structureInSteps(ctx, s)
	if steps.rests {
		problems, err := wait()
		wait = func() ([]string, error) { return problems, err }
	}
	err := v.run(ctx, wait, progress)
	v.findLost()
	if err != nil {
		return v.Verified, err
	}
	moved := false
	err = s.Read(ctx, func(tx *ledger.Tx) error {
		r, err := projection.Removed(ctx, tx)
		moved = r.Pos != v.began
		return err
	})
	if err != nil || !moved {
		return v.Verified, err
	}
	structure := slices.DeleteFunc(v.Findings, func(f Finding) bool { return f.Code != FindStructure })
	found := v.Verified
	err = s.Read(ctx, func(tx *ledger.Tx) error {
		v := newVerifier(tx, since)
		err := v.run(ctx, func() ([]string, error) { return nil, nil }, progress)
		v.findLost()
		found = v.Verified
		found.Findings = append(structure, v.Findings...)
		return err
	})
	return found, err
}

// Limits of a step.
const (
	stepTime   = 500 * time.Millisecond
	pacedTime  = 20 * time.Millisecond
	stepEvents = 1 << 20
	restTimes  = 3 // how long a rest is, in times of the step before it
)

// steps divides a check into reads; the zero steps is one read, on the snapshot that there is.
type steps struct {
	read   func(context.Context, func(*ledger.Tx) error) error
	time   time.Duration // of a step
	events int64         // of a step
	rests  bool          // after each step

	began       time.Time
	first, next int64 // the number of events at which the step began, and at which the time is looked at
	left        []int64
	reported    int64 // the number of events of the last progress
}

// lookEvery is after how many events, or compared rows, a step looks at the time.
const lookEvery = 512

// inStep runs fn, which uses v.tx, as a step.
func (v *verifier) inStep(ctx context.Context, fn func() error) error {
	if v.steps.read == nil {
		return fn()
	}
	err := v.steps.read(ctx, func(tx *ledger.Tx) error {
		v.tx, v.compared.Tx = tx, tx
		if v.frames != nil {
			v.frames.Tx = tx
		}
		v.steps.began, v.steps.first, v.steps.next = time.Now(), v.Events, v.Events+lookEvery
		return fn()
	})
	if err != nil || !v.steps.rests {
		return err
	}
	rest := time.NewTimer(restTimes * time.Since(v.steps.began))
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether the step has lasted long enough, now that so many events are checked.
func (s *steps) over(events int64) bool {
	switch {
	case s.read == nil || events == s.first:
		return false
	case events-s.first >= s.events:
		return true
	case events < s.next:
		return false
	}
	s.next = events + lookEvery
	return s.timeOver()
}

func (s *steps) timeOver() bool { return s.read != nil && time.Since(s.began) >= s.time }

// step checks the next events. After the last one it compares the jobs that are left, and ends the check when
// none is.
func (v *verifier) step(ctx context.Context, progress func(done, total int64)) (done bool, err error) {
	whole, err := v.events(ctx, progress)
	if err != nil || !whole || v.Stopped {
		return false, err
	}
	if v.bound > 0 {
		return true, v.boundedRows(ctx)
	}
	for len(v.fold.Open) > 0 {
		if len(v.steps.left) == 0 {
			v.steps.left = slices.Sorted(maps.Keys(v.fold.Open))
		}
		if err := v.compareNext(ctx); err != nil {
			return false, err
		}
		if len(v.fold.Open) > 0 && v.steps.timeOver() {
			v.steps.time += v.steps.time / 4 // so that it ends, however many events come meanwhile
			return false, nil
		}
	}
	return true, cmp.Or(v.end(ctx), v.left(ctx), v.keyframes(ctx), v.endEvidence(ctx), v.rows(ctx))
}

// compareNext compares a chunk of the jobs that are left. Some of them may have ended since they were listed.
func (v *verifier) compareNext(ctx context.Context) error {
	chunk := make([]int64, 0, differ.Chunk)
	for len(v.steps.left) > 0 && len(chunk) < differ.Chunk {
		if n := v.steps.left[0]; v.fold.Open[n] != nil {
			chunk = append(chunk, n)
		}
		v.steps.left = v.steps.left[1:]
	}
	return v.compared.Compare(ctx, chunk)
}

// longLedger is the number of events from which the structure is checked at the same time as the events.
const longLedger = 20_000

// structure starts the database's own check, of a long ledger concurrently, and returns what waits for it.
func (v *verifier) structure(ctx context.Context) (wait func() ([]string, error)) {
	if v.Since > 0 || v.bound > 0 {
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

// structureInSteps is structure in steps.
func (v *verifier) structureInSteps(ctx context.Context, s *ledger.Store) (wait func() ([]string, error)) {
	if v.Since > 0 {
		return func() ([]string, error) { return nil, nil }
	}
	var problems []string
	done := make(chan error, 1)
	go func() {
		var err error
		problems, err = s.CheckStructure(ctx)
		done <- err
	}()
	return func() ([]string, error) {
		err := <-done
		return problems, err
	}
}
