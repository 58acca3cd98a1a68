// Package view has what is read from a ledger once for all who look at it over HTTP.
//
//	f := view.NewFollower()
//	go f.Run(ctx, store, report)
//	f.Join(end) // of the ledger, as it was read
//	events, held, last, more := f.After(end.Pos) // more is closed when there are others
//
// Files in reading order: follower.go (events as they are recorded), figures.go, now.go (queues and workers
// at one moment), minutes.go, pace.go (how fast queues go), acts.go (what operators did), totals.go (what
// happened since the first event), exemplars.go, moments.go (where to look), verifier.go, whole.go (what has
// left the ledger).
//
// Held by TestFedEventByEventEqualsTheFold, TestFollowerKeepsTheNewestEvents,
// TestViewAfterFailoverThatLostEvents and TestVerifierDaily.
package view
