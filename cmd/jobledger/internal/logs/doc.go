// Package logs reads what commands wrote from the files that 'jobledger work' keeps: as a whole, or as it
// grows until the attempt ends ([Output.Follow]); and it compares these files with the digests in the events,
// for verify and doctor ([Check]). It changes neither the ledger nor the files, and prints nothing.
//
// Only the worker's own event at the end of an attempt has digests. The output of an attempt that was taken
// back or cancelled, or of a command that ended its job itself, cannot be checked.
//
// Files: folder.go (where the files are), output.go, tail.go, check.go.
//
// Held by TestCheckReadsEveryPage, TestTailJoinsPieces and TestTailOverCuts here, and by
// TestLogsFollowEndsWithAttempt and TestVerifyLogsGoesOnBehindUnreadableFile of the program.
package logs
