// Package prove compares a ledger with checkpoints of it, gives checkpoints to places outside, and makes
// and reads proofs. It returns values and prints nothing.
//
//	compared, err := prove.Compare(ctx, tx, checkpoint)
//	if err == nil && !compared.Same() { … compared says where they part }
//
// Files in reading order: compare.go, handout.go, travel.go, state.go, append.go, prove.go, judge.go;
// keyfile.go has the files of the keys that sign checkpoints.
//
// Held by TestCompareFindsWhereLedgersPart, TestHandOutRefusesALedgerThatDiffersFromTheLastOne and
// TestProofsHoldForAnyHistory here, and by TestAttackEvidence and TestKeyFileIsForItsOwnerOnly of the
// program.
package prove
