// Package status answers how the queues and workers of a ledger are doing, now and at any moment of the past.
// It only reads: the rows and events behind its answers are those of package projection. What to say about
// them in words is up to the program.
//
// Files in reading order:
//
//	queues.go, counts.go       the jobs of each queue: [Queues], now or at a moment
//	workers.go, signs.go       worker processes, signs of their life: [Workers]
//	both.go                    queues and workers at once: [Both]
//	lives.go                   from when to when each lived: [Lives]
//	silent.go                  which of them fell silent: [LostWorkers]
//	service.go                 which workers may take which jobs: [Service]
//	limits.go, ready.go        what the limits let through, of the jobs that are ready: [CountReady]
//	waits.go                   which jobs wait for which
//	stranded.go                ready jobs that no worker may take: [Stranded]
//	why.go                     the facts of why one job is in its state: [Explain]
//	copy.go                    whether the ledger is a copy as of a moment: [CopyOf]
//	presence_asof.go           what such a copy must know of its workers: [PresenceAsOf]
//	diff.go                    what changed between two moments: [Compare]
//
// Held by TestStatusAsOfEqualsFold, TestStatusNowEqualsTail and TestSilentInRetrospect of package commands.
//
// This package is not part of the Go API, and may change in any release.
package status
