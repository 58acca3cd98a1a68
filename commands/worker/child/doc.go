// Package child runs one external command, supervises it, and reports how it ended.
//
// The command does not outlive its lease, its maximum runtime or the process that started it. [Start] runs it
// below a supervising parent: a second process of the same program, whose main calls [Supervise]. That parent
// ends the command with TERM and then KILL when a deadline passes, and at once when the worker is gone. On
// Linux it also finds and ends processes that have left the command's process group.
//
//	argv := []string{exe, "supervise"}
//	p, err := child.Start(ctx, child.Spec{Supervisor: argv, Path: "make", Lease: deadlines})
//	if err != nil {
//		return err // a *StartError: this command can never be run
//	}
//	_ = p.Extend(later) // after each heartbeat
//	end := p.Wait()     // the exit code or signal, and the output that was kept
//
// The package knows no jobs and no ledger, and imports nothing of this module. What an exit code means for a
// job is decided by package worker.
//
// # Reading order
//
//   - spec.go: [Spec], [Deadlines], [End] and [StartError], the vocabulary
//   - process_unix.go: [Start] and [Process], the side of the worker
//   - protocol.go: the messages between the worker and the supervising parent
//   - supervise.go: [Supervise], the side of the supervising parent
//   - supervise_linux.go: how it finds descendants
//   - keeper.go: what keeps a lease where a command cannot be ended and the worker is gone
//   - deadlines.go: which signal is sent when, without a clock
//   - input.go, stream.go, retain.go, prefix.go: standard input and output
//   - orphans_linux.go: [ReapOrphans], for the first process of a container
//
// Held by TestScheduleSignals, TestProcessEnd, TestSuperviseAfterWorkerKilled and
// TestSuperviseEndsDescendants. This package is not part of the Go API, and may change in any release.
package child
