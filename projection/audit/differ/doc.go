// Package differ compares the rows of the tables with what the events say. Each function names the rows that
// are missing, that belong to no event, or that differ, and in which column. Verify reports them, see
// package audit, and a rebuild corrects them, see package projection/rebuild.
//
// Reading order: jobs.go, which compares many rows per query, queues.go, limits.go, rates.go, heads.go,
// keyframes.go and dependencies.go, which compare small tables as a whole, text.go.
//
// Held by TestVerifyNamesEachDamagedColumn, TestVerifyFindsWrongGroups and TestRebuildRepairsAnyDamage of
// package projection/audit, and by TestVerifyFindsWrongKeyframes of package projection/keyframe. This
// package is not part of the Go API, and may change in any release.
package differ
