// Package place knows what stands at the place of a ledger's file: how many names the file has, which -wal
// and -shm files next to it are its own, and which file system holds it. It opens no ledger: SQLite finds the
// files of a ledger by its name alone, so these questions come before it is opened.
//
//	if err := place.CheckNames(path); err != nil { … }        // another process may use another name
//	if err := place.CheckSidecars(path, create); err != nil { … } // files of another ledger are in the way
//
// Files in reading order: names*.go and mount*.go (one file under two names), sidecar*.go (the -wal and -shm
// files, and the tag that says whose they are), filesystem*.go.
//
// Held by TestOpenWithSecondNameOnlyReads, TestOpenWithNamesOfInterruptedCopies, TestMountsHaveFile,
// TestSidecarPreventsNewLedgerAfterRemoval, TestSidecarOfExchangedLedgerIsNotMixed and
// TestFilesystemNetworkTypes of package ledger.
package place
