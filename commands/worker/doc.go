// Package worker is the runtime of a worker: it claims jobs into free slots, keeps their leases alive, runs a
// [Handler] or a [Command] for each, and records how each ended.
//
//	w := &worker.Worker{
//		Service: service,
//		Process: ledger.Worker{Name: "mailer", Boot: ulid.Make().String()},
//		Queues:  []string{"mail"},
//		Handler: worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
//			return send(ctx, job.Payload)
//		}),
//	}
//	stats, err := w.Run(ctx)
//
// One goroutine does all the writing of a [Worker]. So a heartbeat never races the end of the same job, and
// the ends, the heartbeats that are due and the next claims share one transaction.
//
// The package does not decide what a job may do next, when it is retried, or whose it is: that is package
// commands. How a program is started, watched and ended is package child.
//
// # Reading order
//
//   - worker.go: [Worker] and [Worker.Run], the sweeper, the start and the end; finish.go: [Worker.Finish]
//   - loop.go: the loop, and what it waits for
//   - poller.go: when to ask for jobs, a state machine without I/O; poll.go: its reads and waits
//   - group.go: one transaction of ends, heartbeats and claims
//   - retry.go: errors of the ledger and the backoff after them
//   - task.go: one claimed job with its lease; run.go: the goroutines that run tasks
//   - handler.go: [Handler], [Permanent] and [Snooze]
//   - command.go: [Command]; environment.go, logfile.go and exits.go: its variables, log files and exit codes
//   - hooks.go: [Hooks] for metrics
package worker
