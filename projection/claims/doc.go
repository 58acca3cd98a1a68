// Package claims finds the next jobs that a worker may claim, in claiming order: by priority (higher first),
// run_at and id, within the limits of their queues and with a turn for each group. It finds candidates only;
// package commands judges and claims them.
//
//	search, err := claims.Seek(ctx, tx, claims.Want{Queues: []string{"mail"}}, tx.Now(), 10)
//	…
//	jobs, err := search.Jobs(ctx)
//
// Files in reading order:
//
//	search.go   a [Search]: [Seek], [Search.Jobs]; when the next job may be claimed: [NextRunAt]
//	lanes.go    reading the lanes of a queue, and the jobs of a lane
//	groups.go   lanes whose jobs belong to groups
//	salvage.go  claiming the others when a row is damaged
//	cache.go    what the writer keeps between claims
//	sole.go     the one lane of a claim that a server carries out: [FindSoleLane]
//	put.go      [Put] writes a job's row and keeps all that up to date
//
// Held by TestStatementsUseIndexes here, and by TestClaimSearchEqualsSortedFilter,
// TestClaimSeesChangesOfOtherProcesses and TestReadySaysWhenToComeBack of package commands. This package
// is not part of the Go API, and may change in any release.
package claims
