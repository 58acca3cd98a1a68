// Package commands is the write side of jobledger: what may be asked of a job, the rules that decide, and the
// Service that carries it out in a transaction.
//
// A program enqueues with [Service.Enqueue]. A worker takes jobs with [Service.Claim], keeps them with
// [Heartbeat], and ends them with [Succeed], [Fail] or [Release]; package jobledger/commands/worker does all
// of this for a function or a program. An operator asks for [Cancel], [Retry], [Reschedule] or [Erase]:
//
//	s := &commands.Service{Store: store}
//	jobs, err := s.Enqueue(ctx, "api", commands.Enqueue{Queue: "mail", Payload: body, Key: "invoice-17"})
//	...
//	job, err := s.Apply(ctx, "cli:ada", jobs[0].ID, commands.Cancel{Reason: "sent by hand"})
//
// [Service.ApplyBatch] carries out many commands in one transaction, [Service.ApplyAndClaim] also claims the
// next jobs in it. A [Sweeper] takes jobs back from workers whose lease has run out.
//
// # One write path
//
// Every change is decided by pure rules, which are given the job and the time and return one fact, and is
// recorded by one function, which writes the row and appends the event. The owner of a claim presents its
// token; a command with a token that is not live changes nothing, and the ledger records that it was refused
// ([RefusedError]).
//
// Import and Replay are the exception: they append the events of another ledger as they are, through
// audit.Loader.
//
// # What it is not
//
// The meaning of an event (what a job is after it) is in package projection, and so is everything that reads.
// Storage and time come from package ledger.
//
// # Files in reading order
//
//	command.go             the commands and their checks; validate.go has the limits
//	decide.go              the rules; stale.go those for a token that is not live; backoff.go
//	internal/journal       the write path
//	apply.go               one command on one job
//	enqueue.go, claim.go   new jobs; jobs for a worker
//	batch.go               many commands and a claim in one transaction
//	sweep.go               expired leases
//	queue.go, presence.go  pausing queues; worker processes
//	restore.go, rebuild.go whole ledgers; package load takes histories in
package commands
