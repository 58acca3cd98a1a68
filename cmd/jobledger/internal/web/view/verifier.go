package view

import (
	"context"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/seen"
	"jobledger/ledger"
	"jobledger/projection/audit"
)

// Times and sizes of verification.
const (
	verifyEvery = time.Minute
	verifyWhole = 200_000 // events up to which the whole ledger is verified at the start
	verifyLast  = 10_000  // of a longer one, so many are
)

// Verifier verifies what is recorded, as time goes by. It is safe for concurrent use.
type Verifier struct {
	Now func() time.Time

	mu   sync.Mutex
	last Verification
	end  seen.End      // of what was verified
	ask  chan struct{} // has room for one
}

// Verification is what the last check found.
type Verification struct {
	Since, Until int64     // the events after Since, up to Until, were verified
	At           time.Time // when; zero: not yet
	Took         time.Duration
	Findings     []audit.Finding
	Err          error // why the last check could not be carried out
	Running      bool

	Whole   int64     // up to here reached the last check of the whole ledger; 0: there was none
	WholeAt time.Time // when that was
	Stopped bool      // an event could not be folded; later ones were not checked
}

// CheckResult is what the last verification says of one check.
type CheckResult struct {
	audit.Check
	Findings int   // that it has
	Done     bool  // it was carried out
	Until    int64 // up to this event
}

// Checks are the results of each check, by code.
func (v Verification) Checks() []CheckResult {
	found := make(map[string]int)
	for _, f := range v.Findings {
		found[f.Code]++
	}
	var all []CheckResult
	for _, c := range audit.Checks {
		r := CheckResult{Check: c, Findings: found[c.Code], Done: !v.At.IsZero(), Until: v.Until}
		if c.Whole {
			r.Done, r.Until = !v.WholeAt.IsZero(), v.Whole
		}
		all = append(all, r)
	}
	return all
}

// NewVerifier returns a verifier that has not begun.
func NewVerifier(now func() time.Time) *Verifier {
	return &Verifier{Now: now, ask: make(chan struct{}, 1)}
}

// Last returns what was verified.
func (v *Verifier) Last() Verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// AskWhole has the whole ledger verified soon.
func (v *Verifier) AskWhole() {
	select {
	case v.ask <- struct{}{}:
	default:
	}
}

// Run verifies until ctx ends: a short ledger whole, of a long one the end, and every minute what is new.
func (v *Verifier) Run(ctx context.Context, store *ledger.Store) {
	ticker := time.NewTicker(verifyEvery)
	defer ticker.Stop()
	whole := false
	for {
		v.check(ctx, store, whole)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			whole = false
		case <-v.ask:
			whole = true
		}
	}
}

// check verifies what is new, or everything.
func (v *Verifier) check(ctx context.Context, store *ledger.Store, whole bool) {
	v.mu.Lock()
	v.last.Running = true
	last, before := v.last, v.end
	v.mu.Unlock()
	began := time.Now()
	var again bool
	var end seen.End
	var got audit.Verified
	err := store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		holds, err := before.Holds(ctx, tx, tail)
		if err != nil {
			return err
		}
		again = last.At.IsZero() || !holds // from the beginning, as another ledger took its place
		switch {
		case whole || again && tail <= verifyWhole:
			got, err = audit.Verify(ctx, tx, nil)
		case again:
			got, err = audit.VerifySince(ctx, tx, tail-verifyLast, nil)
		case tail == last.Until:
			got = audit.Verified{Since: tail, Until: tail}
		default:
			got, err = audit.VerifySince(ctx, tx, last.Until, nil)
		}
		if err == nil {
			end = seen.End{}
			err = end.Move(ctx, tx, got.Until)
		}
		return err
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last.Running = false
	if ctx.Err() != nil {
		return
	}
	if v.last.Err = err; err != nil {
		return
	}
	if v.end = end; again || whole {
		v.last.Since, v.last.Findings, v.last.Took = got.Since, nil, time.Since(began)
		v.last.Stopped = false
	}
	if got.Since == 0 && (last.At.IsZero() || whole) {
		v.last.Whole, v.last.WholeAt = got.Until, v.Now()
	}
	v.last.Stopped = v.last.Stopped || got.Stopped
	v.last.Until, v.last.At = got.Until, v.Now()
	v.last.Findings = append(v.last.Findings, got.Findings...)
}
