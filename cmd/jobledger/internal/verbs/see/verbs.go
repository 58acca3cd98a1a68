// Package see has the verbs that show the ledger as it is, or as it was at a moment: status, list, show, why,
// logs, workers, queues and wait, a file each.
//
// Held by TestReadTranscript, TestServeAnswersAsTheVerbs, TestScripts/list and TestScripts/wait of the
// program.
package see

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/projection"
)

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }

// at is v with its clock set to m.
func (p *Verbs) at(m projection.Moment) *Verbs { return &Verbs{p.At(m)} }
