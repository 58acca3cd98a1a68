// Package prove has the verbs that check a ledger and prove its history to others.
//
//   - verify.go, verify_proof.go: [Verbs.Verify], a whole ledger, or a proof without one
//   - seal.go, checkpoint.go, prove.go, witness.go: the evidence
//
// Held by TestAttackEvidence, TestScripts/checkpoint, TestScripts/prove and TestScripts/seal of the
// program.
package prove

import "jobledger/cmd/jobledger/internal/cli"

// Verbs makes the verbs of this package, for a program.
type Verbs struct{ *cli.Program }
