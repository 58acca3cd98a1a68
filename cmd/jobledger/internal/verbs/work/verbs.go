// Package work has the verbs of workers.
//
//   - work.go, guard.go: [Verbs.Work], a worker that runs a command for each job
//   - claim.go, exec.go, heartbeat.go, succeed_fail_release.go: the steps of a worker of one's own making
//
// Held by TestScripts/exec, TestScripts/claim, TestWorkSecondSignalReleasesJobs and
// TestKillWorkerAtEachStep of the program.
package work

import (
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
)

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }

// asText is what an owner reports, with U+FFFD for bytes that are not UTF-8, as 'work' does with what a
// command writes: they must not lose the end of an attempt.
func asText(reported string) string { return strings.ToValidUTF8(reported, "\uFFFD") }
