// Package deps keeps the table of what jobs wait for. An [Edge] leads from a job, the parent, to one that
// waits for its end, the child; an operator's hold is an edge without a parent. The table follows from the
// events, and has only the edges that are not resolved, so that a ledger without dependencies has none.
//
//   - table.go: the edges as they are stored, and the parents that are resolved in steps
//   - change.go: what the state of a parent means for those that wait for it; pure
//   - cycle.go: whether a job waits for another one already
//   - fold.go: the same derived from the events, for verify, rebuild and import
//
// It writes no event: package commands does, in the same transaction.
//
// Held by TestDependenciesOfAnyGraph, TestDependencyRefused and TestDependencyFaultsAreFound of package
// commands. This package is not part of the Go API, and may change in any release.
package deps
