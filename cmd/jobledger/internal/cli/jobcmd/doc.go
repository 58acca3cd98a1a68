// Package jobcmd is what the verbs that run a command for a job, or make one that carries it, have in common.
//
//   - form.go: [FormFlags] and [Form], the command that a job carries
//   - flags.go: [Flags] and [FromLine], the command and what its end means
//   - outlet.go: [PassOutputOn], its output and the messages, to readers that may be slow or gone
//   - signals.go: [StopOnSignals] and [Stoppable], an orderly end
//   - log.go: [LogHandler], what a worker says
//
// Running the command is the work of package worker.
//
// Held by TestOutletSlowReaderGetsAll and TestOutletReportsABrokenPipe here, and by
// TestWorkSecondSignalReleasesJobs and TestScripts/work of the program.
package jobcmd
