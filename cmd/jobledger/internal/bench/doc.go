// Package bench measures the queue on the disk of its user. [Run] makes a ledger in a temporary folder,
// drives it as a Go program would, counts every execution, verifies the ledger, removes it and returns the
// figures. It prints nothing and touches no other ledger.
//
//	result, err := bench.Run(ctx, bench.Options{Phase: "drain", Workers: 64, Dir: "/var/lib"})
//
// A run can have several processes. They are the program itself, started with [Word] as its only argument; it
// must call [Process] then.
//
// It is not a comparison with other queues: that is the module testdata/bench.
//
// Files in reading order:
//
//   - bench.go: [Options], [Result], [Run], results as a [Table] for people
//   - phases.go: what each phase does
//   - measure.go: what is read from the ledger and the disk
//   - load.go: callers that enqueue, and workers
//   - process.go: the same in other processes
//
// Held by TestRunEachPhase, TestRunWithTwoProcesses and TestResultReportsJobsThatRanTwiceOrAreLeft.
package bench
