// Package maintain has the verbs that copy, move, repair, examine and measure whole ledgers: backup, restore,
// import, export, replay, rebuild, archive, doctor and bench, a file each.
package maintain

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
