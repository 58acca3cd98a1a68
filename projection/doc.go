// Package projection derives the state of jobs and queues from their events. [Evolve] and [EvolveQueue] are
// the pure rules; the tables jobs and queues hold the result. Commands and every replay use the same rules,
// so the tables can be dropped and rebuilt at any time.
//
// It does not decide which events happen: that is package commands. It does not check the tables: that is
// package projection/audit. Package projection/status answers how queues and workers are doing, and package
// projection/attempts which worker held which job.
//
// Files in reading order:
//
//	job.go, evolve.go             a [Job] and what each event makes of it
//	queue.go, lane.go             a [Queue]; the lane of a queued job, which is its place in claiming order
//	rows.go, put.go, get.go, find.go
//	                              a job as a row: [Put], [Get], [Held], [Expired]
//	claim_search.go               the next jobs to claim: [Seek], [Search.Jobs]
//	claim_lanes.go, claim_cache.go, claim_salvage.go
//	                              reading a lane, keeping lanes between claims, skipping damaged rows
//	claim_burst.go                the one lane of a claim that a server carries out: [FindSoleLane]
//	presence.go                   when a worker process was last seen: [PutPresence]
//	list.go, lane_count.go, lost_claims.go
//	                              questions about now
//	asof.go, list_asof.go, open_asof.go, claims.go
//	                              questions about the past, at a [Moment] or along the events
//
// A claim goes Seek, fittingLanes, Jobs; for each job the command evolves it and calls Put.
package projection
