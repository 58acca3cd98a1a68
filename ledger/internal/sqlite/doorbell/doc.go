// Package doorbell wakes the other processes that have a ledger open. The doorbell is a folder next to the
// ledger, with one file per topic. A process touches a file after a commit, with a [Ringer]. Other processes
// watch the folder, with [Watch].
//
// Only speed depends on it: listeners also poll the ledger.
//
// Held by TestWatchWakesOnOtherProcess and TestWatchSurvivesRemovedDoorbell of package ledger, and by
// TestPipeAsDoorbellBlocksNothing of the program.
package doorbell
