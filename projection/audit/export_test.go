package audit

import (
	"context"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// VerifyHistory is Verify without the structure of the file and its guards.
func VerifyHistory(ctx context.Context, tx *ledger.Tx) (Verified, error) {
	v := newVerifier(tx, 0)
	err := v.history(ctx, nil)
	v.findLost()
	return v.Verified, err
}

// VerifyInSteps is VerifyStore without the structure of the file, in steps of the given number of events. It
// calls between before each step.
func VerifyInSteps(ctx context.Context, s *ledger.Store, since, events int64, between func()) (
	Verified, error) {
	v := newVerifier(nil, since)
	read := func(ctx context.Context, fn func(*ledger.Tx) error) error {
		between()
		return s.Read(ctx, fn)
	}
	v.steps = steps{read: read, time: stepTime, events: events}
	err := v.run(ctx, func() ([]string, error) { return nil, nil }, nil)
	v.findLost()
	return v.Verified, err
}

// LimitLoading makes a Loader hold at most n jobs in memory during the test.
func LimitLoading(t testing.TB, n int) {
	before := maxLoading
	maxLoading = n
	t.Cleanup(func() { maxLoading = before })
}

// The time rules, as the verifier has them.
const (
	MinLease   = minLease
	MaxLease   = maxLease
	MaxSnoozes = maxSnoozes
)

// Backoff returns the bounds of the wait after the nth failure.
func Backoff(b event.Backoff, n int) (least, most time.Duration) { return backoff(b, n) }

// SetClaimsPage sets how many claims the verifier reads at first for the rates, until the test ends.
func SetClaimsPage(t testing.TB, n int) {
	before := claimsPage
	claimsPage = n
	t.Cleanup(func() { claimsPage = before })
}

// VerifyResting is VerifyPaced without the structure of the file, in steps of the given time. It also returns
// how long the steps took.
func VerifyResting(ctx context.Context, s *ledger.Store, step time.Duration) (v Verified, took time.Duration,
	err error) {
	read := func(ctx context.Context, fn func(*ledger.Tx) error) error {
		return s.Read(ctx, func(tx *ledger.Tx) error {
			began := time.Now()
			defer func() { took += time.Since(began) }()
			return fn(tx)
		})
	}
	checked := newVerifier(nil, 0)
	checked.steps = steps{read: read, time: step, events: stepEvents, rests: true}
	err = checked.run(ctx, func() ([]string, error) { return nil, nil }, nil)
	return checked.Verified, took, err
}
