// Package audit has the verbs that answer what happened: history, attempts, events, owner, diff, report and
// incident, a file each.
//
// Held by TestAuditTranscript, TestReportEqualsItsSQL, TestEventsFilterByTimeAndPosition and
// TestScripts/incident of the program.
package audit

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
