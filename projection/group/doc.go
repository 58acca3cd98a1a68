// Package group keeps the queued jobs of groups in order: the table group_heads has a row for each group with
// queued jobs in a lane, with the time from which its first job may start. The group that has waited for
// longest since its last claim comes first. The rows are derived: a function of the queued jobs, the last
// claims and the live claims. They are written in the transaction that changes these.
//
// Files in reading order: lane.go, head.go, changes.go, search.go.
//
// Held by TestGroupsAnyCommands, TestGroupsWithManyJobsDelayOthersByTwoRounds and TestGroupsImported of
// package commands, and by TestVerifyFindsWrongGroups of package projection/audit. This package is not
// part of the Go API, and may change in any release.
package group
