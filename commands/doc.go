// Package commands is the write side of jobledger: what may be asked of a job, the rules that decide, and the
// Service that carries it out in a transaction.
//
// A program enqueues with [Service.Enqueue]. Package commands/worker runs a function or a command
// for each job. A program with a loop of its own takes jobs with [Service.Claim], keeps them with
// [Service.Heartbeat], and ends them with [Service.Complete], [Service.Fail], [Service.Release] or
// [Service.Snooze]. An operator asks for [Service.Cancel], [Service.Retry], [Service.Reschedule],
// [Service.Unblock] or [Service.Erase], and for a queue [Service.Pause], [Service.Limit] or
// [Service.SetDefaults]. Anyone may [Service.Get], [Service.List] and see the [Service.History]:
//
//	s := &commands.Service{Store: store}
//	jobs, err := s.Enqueue(ctx, "api", commands.Enqueue{Queue: "mail", Payload: body, Key: "invoice-17"})
//	...
//	job, err := s.Cancel(ctx, "ada", jobs[0].ID, "sent by hand")
//
// Each of these calls is one [Command] of the same name, which [Service.Apply] carries out.
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
// # For programs that embed it
//
// A Service is safe for concurrent use. Each call takes a context; where it returns the error of that
// context, the command was not carried out, and may be sent again. A value of Enqueue, Limits or a Command is
// copied; a Sweeper is not to be.
//
// Other names than those above are for other packages of this module: [Tick] and Service.EnqueueTick for
// schedules, [CancelIn] and [PauseIn] within a transaction, [TakeOver], [ReportStop], Service.Present and
// Service.WorkerStarted for workers, Service.Staging and Service.Restored for files that are restored. Each
// follows the rules, so a program that calls them leaves a ledger that verifies. The methods of
// ledger.Tx that write, such as Append, follow none: they are for the write path alone.
//
// # What it is not
//
// The meaning of an event (what a job is after it) is in package projection, and so is what reads.
// Storage and time come from package ledger.
//
// # Files in reading order
//
//	service.go, errors.go  a Service, and what its callers branch on
//	command.go             the commands and their checks; checks.go, with internal/check,
//	                       which has the limits of fields
//	decide.go              the rules; heartbeat.go; stale.go those for a token that is not live; backoff.go
//	internal/journal       the write path
//	apply.go, calls.go     one command on one job; the calls by their names
//	stop.go, takeover.go   commands of workers that end or change; unblock.go, of an operator
//	enqueue.go, claim.go   new jobs; jobs for a worker; idempotency_key.go
//	unique.go              keys that other jobs have
//	enqueue_after.go       jobs that wait for others
//	batch.go               many commands and a claim in one transaction
//	turn.go                the same in one round trip; internal/burst has how
//	sweep.go, reclaim.go   expired leases; internal/sweep has how they are watched, and what else is done
//	queue.go, presence.go  pausing queues; worker processes
//	limit.go, defaults.go  what bounds the claims from a queue, and what its jobs get
//	schedule.go            for package schedule: the job of a tick, and commands within a transaction
//	sealing.go             whether the ledger's events are sealed, and with which key
//	restore.go, rebuild.go whole ledgers; package load takes histories in
//
// Held by TestTransitions, TestRefusedIsRecordedOncePerTokenAndCommand and TestStorm here, and by
// TestModelAnyCommands of package commands/internal/modeltest.
package commands
