// Package work has the verbs of workers.
//
//   - work.go, guard.go: [Verbs.Work], a worker that runs a command for each job
//   - claim.go, exec.go, heartbeat.go, succeed.go, fail.go, release.go: the steps of a worker of one's own
//
// making
package work

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
