// Package witness makes every host that works a witness of the ledger: a file in the user's state folder
// holds the last checkpoint that this host saw. A ledger that was replaced by an older copy, or continued
// differently, does not match that checkpoint. The file is outside of the ledger, so it finds what the ledger
// alone cannot show.
//
//	seen, err := witness.In(folder).Look(ctx, store)
//	if err == nil && seen.Alarm() { … claim nothing }
//
// A ledger that is not sealed, or has another name than the one that was seen at its address, is not a
// continuation of that either. What was seen is never forgotten: once it is replaced, because a restore
// explains that or an operator accepts it, it is in the history of the address.
//
// Files in reading order: witness.go, history.go, place.go, file.go, guard.go.
//
// Held by TestWitnessGoesOnWithTheLedger, TestWitnessReplacesOnlyWhatItRead and
// TestGuardStopsARunningWorker here, and by TestScripts/witness of the program.
package witness
