// Package audit compares what the tables say with what the events say. [Verify] finds the differences, a
// [Loader] writes a history into an empty ledger, and [CommonPrefix] and [LostAfter] compare two ledgers.
// Package projection/rebuild removes the differences. The rules of an event are those of package projection;
// nothing here is part of the path of a command.
//
// Reading order: verify.go, which replays the events with a fold.Fold and reports what is in finding.go, and
// its checks: verify_steps.go, verify_rules.go, verify_limits.go, verify_starts.go, verify_workers.go,
// verify_keys.go, verify_bodies.go, verify_rows.go and verify_tables.go (which report what package differ
// finds), evidence.go, verify_archive.go, verify_removed.go; then loader.go, divergence.go.
//
// Held by TestVerifyFindsEveryMutation, TestVerifyFinds and TestCheckpointFindsEveryChangedByte here, and
// by TestImportRoundTripOfRandomHistories of package commands.
package audit
