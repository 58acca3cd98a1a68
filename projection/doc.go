// Package projection derives the state of jobs and queues from their events. [Evolve] and [EvolveQueue] are
// the pure rules; the tables jobs and queues hold the result. Commands and every replay use the same rules,
// so the tables can be dropped and rebuilt at any time.
//
// It does not decide which events happen: package commands does. It does not check the tables: that is
// package projection/audit. Package projection/claims finds the next jobs to claim, package projection/status
// answers how queues and workers are doing, and package projection/attempts which worker held which job.
//
// Files in reading order:
//
//	job.go, evolve.go             a [Job] and what each event makes of it
//	queue.go, lane.go             a [Queue]; the lane of a queued job, which is its place in claiming order
//	worker_fits.go                which worker may take a job: [Fits]
//	rows.go, put.go, get.go, find.go
//	                              a job as a row: [PutRow], [Get]
//	row_check.go                  what writing a job changes in its row: [Changes]
//	held.go                       the live claims: [Held], [Expired]
//	presence.go                   when a worker process was last seen: [PutPresence]
//	list.go, exits.go, hosts.go, lost_claims.go
//	                              questions about now
//	asof.go, list_asof.go, open_asof.go
//	                              questions about the past, at a [Moment] or along the events
//	archive.go                    what the ledger still holds of it, where events were archived
//
// Held by TestHistoriesReplay, TestHistoriesAreReadBackEqual and TestListMatches here, and by
// TestTransitions of package commands.
package projection
