// Package audit has the verbs that answer what happened: history, attempts, events, owner, diff, report and
// incident, a file each.
package audit

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
