// Package maintain has the verbs that copy, move, repair, examine and measure whole ledgers: backup, restore,
// import, export, replay, rebuild, archive, doctor and bench, a file each.
//
// Held by TestDoctorVerdict here, and by TestScripts/archive, TestScripts/restore and TestScripts/rebuild
// of the program.
package maintain

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
