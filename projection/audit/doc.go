// Package audit compares what the tables say with what the events say. [Verify] finds the differences,
// [PlanRebuild] and [RebuildPlan.Apply] remove them, a [Loader] writes a history into an empty ledger, and
// [CommonPrefix] and [LostAfter] compare two ledgers. The rules of an event are those of package projection;
// nothing here is part of the path of a command.
//
// Reading order: fold.go (the replay), verify.go and its checks verify_rules.go, verify_bodies.go,
// verify_rows.go and verify_queues.go, compare.go (rows in chunks), rebuild.go, loader.go, divergence.go.
package audit
