// Package audit compares what the tables say with what the events say. [Verify] finds the differences,
// [PlanRebuild] and [RebuildPlan.Apply] remove them, a [Loader] writes a history into an empty ledger, and
// [CommonPrefix] and [LostAfter] compare two ledgers. The rules of an event are those of package projection;
// nothing here is part of the path of a command.
//
// Reading order: verify.go, which replays the events with a fold.Fold, and its checks verify_rules.go,
// verify_bodies.go, verify_rows.go (which reports what package differ finds), verify_limits.go,
// verify_starts.go, verify_workers.go, verify_archive.go and evidence.go; groups.go, dependencies.go,
// keyframes.go, rebuild.go, loader.go, divergence.go.
package audit
