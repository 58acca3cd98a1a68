// Package proof is the evidence of a ledger: the hash tree over its events, checkpoints of that tree, and
// proofs that single events are in it. It is pure: it reads no ledger and no file, so that a verifier needs
// nothing else.
//
// The tree is that of RFC 6962, as golang.org/x/mod/sumdb/tlog builds it. Its leaf number i is the event at
// position i+1, in the text that event.Event.AppendLeaf gives. A ledger stores one hash
// for each [BlockSize] leaves; a [Tree] computes everything else from these and the leaves.
//
// A [Checkpoint] says how large the tree is and what its root is. A user who keeps one outside of the ledger
// can show later that the events up to it are what they were. Its text is that of
// https://c2sp.org/tlog-checkpoint, signed as https://c2sp.org/signed-note says. A [Proof] holds events,
// where they are in the tree, and a checkpoint; it is checked without the ledger. A [Consistency] is checked
// in the same way; it ties a checkpoint to an older one.
//
// Files in reading order: merkle.go, checkpoint.go, split.go, proof.go, consistency.go,
// statement.go.
//
// Held by TestTreeRootIsThatOfRFC6962, TestProofHoldsAndNoChangedByteDoes,
// TestConsistencyHoldsBetweenAnySizes,
// TestCheckpointIsReadAsItWasSigned and TestStatementFindsWhatWasTakenOut. This package is not part of the
// Go API, and may change in any release.
package proof
