// Package limit is what bounds the claims from a queue: the limits that the events queue_limited set, their
// table, and how many jobs hold a slot. Live claims are the semaphore: no slot is recorded apart from them,
// so none can leak when a process dies.
//
// Files in reading order: limit.go, store.go, used.go, live.go.
//
// Held by TestLimitHoldsAtEveryPosition, TestRateHoldsInEveryWindow and TestGroupRateSpacesStarts of
// package commands, and by TestVerifyFindsWrongLimits of package projection/audit. This package is not
// part of the Go API, and may change in any release.
package limit
