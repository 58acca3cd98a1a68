// Package worker is the runtime of a worker: it claims jobs into free slots, keeps their leases alive, runs a
// [Handler] or a [Command] for each, and records how each ended.
//
//	store, err := ledger.Open(ctx, "jobs.db") // or "postgres://…"
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	service := &commands.Service{Store: store}
//
//	var mux worker.Mux
//	worker.Handle(&mux, "mail", func(ctx context.Context, job worker.Job[Mail]) (any, error) {
//		return nil, send(ctx, job.Args.To, job.Args.Text)
//	})
//	w := &worker.Worker{Service: service, Handler: &mux, Slots: 4, SoftStop: 20 * time.Second}
//	stats, err := w.Run(ctx) // until SIGTERM, by signal.NotifyContext
//
// Elsewhere, in this process or any other, jobs are enqueued for it:
//
//	_, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Payload: text, Key: "order-17"})
//
// # What is safe at the same time
//
// A Service and its Store, a [Mux], and [Worker.Stop] may be used from any goroutine. A Worker is for one Run
// or Finish, and its fields are not changed after that has begun. A Handler is called from as many goroutines
// as the Worker has Slots. [Hooks] are called one at a time. [Progress] and [JobOf] may be called from any
// goroutine that has the Handler's context, until the Handler returns.
//
// # How a handler ends
//
// A Handler uses the context that it is given: it ends when the work must stop, and context.Cause says why.
// What a Handler returns counts as long as its claim is live. It returns, and the ledger records:
//
//   - result, nil: succeeded
//   - an error: failed, with the code error and its text
//   - [Error], also wrapped: failed, with its code
//   - [Permanent](err): failed, never tried again
//   - [Snooze](d): released, to run again after d; the hundredth time failed
//   - [Cancel](reason): cancelled, by the worker
//   - a panic: failed, with the code panic and the stack
//   - result, nil after its max runtime: succeeded, with after_max_runtime
//   - an error after its max runtime: failed, with max_runtime
//   - nothing after its max runtime: reclaimed, with max_runtime, when the lease has ended
//   - result, nil after it was stopped with Run: succeeded
//   - an error after it was stopped with Run: released, to run again at once
//   - nothing after it was stopped with Run: released, to run when the lease would have ended
//   - anything after a cancel or a lost lease: stopped, and the result is dropped
//
// "Nothing" is nothing within StopTimeout after it was asked to stop. Such a Handler is logged, reported to
// [Hooks].Stuck and counted, gets no more heartbeats, and keeps its slot unless the hook gives it away. Run
// waits for it no longer than that.
//
// # Inside
//
// One goroutine does all the writing of a [Worker]. So a heartbeat never races the end of the same job, and
// the ends, the heartbeats that are due and the next claims share one transaction.
//
// The package does not decide what a job may do next, when it is retried, or whose it is: that is package
// commands. How a program is started, watched and ended is package child; where its output goes, package
// attemptlog.
//
// # Reading order
//
//   - worker.go: [Worker] and [Worker.Run], the sweeper, the start and the end; finish.go: [Worker.Finish]
//   - backend.go: [Backend], the ledger as a worker sees it
//   - loop.go: the loop, and what it waits for
//   - poller.go: when to ask for jobs, a state machine without I/O; poll.go: its reads and waits
//   - group.go: one transaction of ends, heartbeats and claims
//   - retry.go: errors of the ledger and the backoff after them
//   - task.go: one claimed job with its lease; run.go: the goroutines that run tasks
//   - stuck.go: handlers that do not stop
//   - handler.go: [Handler]; mux.go: [Mux], [Handle], [Middleware] and [RetryBy]
//   - ends.go: [Error], [Permanent], [Snooze] and [Cancel]; context.go: [JobOf] and [Progress]
//   - command.go: [Command]; environment.go and exits.go: its variables and exit codes
//   - hooks.go: [Hooks] for metrics
//
// Held by TestHandlersEndAsTheDocsSay, TestStopIsBounded, TestPoller and TestWorkersCompetingRunEachJobOnce
// here, and by TestKillWorkerAtEachStep of the program.
package worker
