package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/commands/cron"
	"jobledger/ledger"
	"jobledger/projection/audit"
)

// Times and sizes of verification.
const (
	verifyEvery = time.Minute
	verifyWhole = 200_000 // events up to which the whole ledger is verified at the start
	verifyLast  = 10_000  // of a longer one, so many are
)

// Verifier verifies new events at regular times. It is safe for concurrent use.
type Verifier struct {
	Now func() time.Time
	// Whole is when the whole ledger is verified, slowly; the zero Schedule: only when asked for.
	Whole cron.Schedule

	mu   sync.Mutex
	last Verification
	end  await.SeenEnd // of what was verified
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

	Whole     int64     // up to here reached the last check of the whole ledger; 0: there was none
	WholeAt   time.Time // when that was
	WholeTook time.Duration
	Next      time.Time // when the next one is due, by Verifier.Whole; zero: none is
	Stopped   bool      // an event could not be folded; later ones were not checked
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
func NewVerifier(now func() time.Time, whole cron.Schedule) *Verifier {
	return &Verifier{Now: now, Whole: whole, ask: make(chan struct{}, 1)}
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

// extent is what a check is of.
type extent int

const (
	onlyNew extent = iota // what is new; at the start a short ledger whole, of a long one the end
	asked                 // everything, as a user waits for it
	due                   // everything, slowly
)

// Run verifies until ctx ends: a short ledger whole, of a long one the end, every minute what is new, and
// everything when Whole says so.
func (v *Verifier) Run(ctx context.Context, store *ledger.Store) {
	next := v.schedule()
	for what := onlyNew; ; {
		v.check(ctx, store, what)
		wait := verifyEvery
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(v.Now()), 0))
		}
		timer := time.NewTimer(wait)
		what = onlyNew
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			if !next.IsZero() && !v.Now().Before(next) {
				what, next = due, v.schedule()
			}
		case <-v.ask:
			timer.Stop()
			what = asked
		}
	}
}

// schedule returns when the next check of everything is due.
func (v *Verifier) schedule() time.Time {
	next := v.Whole.Next(v.Now())
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last.Next = next
	return next
}

// begin returns the event after which a check of everything, or of what is new since last, begins. again is
// true if it does not continue from last, for example because the ledger is another one.
func begin(ctx context.Context, store *ledger.Store, last Verification, end await.SeenEnd, whole bool) (since,
	tail int64, again bool, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		if tail, err = tx.Tail(ctx); err != nil {
			return err
		}
		holds, err := end.Holds(ctx, tx, tail)
		again = whole || last.At.IsZero() || !holds
		switch {
		case !again:
			since = last.Until
		case !whole && tail > verifyWhole:
			since = tail - verifyLast
		}
		return err
	})
	return since, tail, again, err
}

// check verifies what is new, or everything. It reads in steps, so that no snapshot is open for long.
func (v *Verifier) check(ctx context.Context, store *ledger.Store, what extent) {
	v.mu.Lock()
	v.last.Running = true
	last, end := v.last, v.end
	v.mu.Unlock()
	began := time.Now()
	since, tail, again, err := begin(ctx, store, last, end, what != onlyNew)
	verify := audit.VerifyStore
	if what == due {
		verify = audit.VerifyPaced
	}
	got := audit.Verified{Since: since, Until: since}
	if err == nil && (again || since < tail) {
		got, err = verify(ctx, store, since, nil)
	}
	if err == nil {
		end = await.SeenEnd{}
		err = store.Read(ctx, func(tx *ledger.Tx) error { return end.Move(ctx, tx, got.Until) })
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last.Running = false
	if ctx.Err() != nil {
		return
	}
	if v.last.Err = err; err != nil {
		return
	}
	if v.end = end; again {
		v.last.Since, v.last.Findings, v.last.Took = got.Since, nil, time.Since(began)
		v.last.Stopped = false
	}
	if again && since == 0 {
		v.last.Whole, v.last.WholeAt, v.last.WholeTook = got.Until, v.Now(), v.last.Took
	}
	v.last.Stopped = v.last.Stopped || got.Stopped
	v.last.Until, v.last.At = got.Until, v.Now()
	for _, f := range got.Findings {
		if !slices.Contains(v.last.Findings, f) { // each check looks at the guards
			v.last.Findings = append(v.last.Findings, f)
		}
	}
}
