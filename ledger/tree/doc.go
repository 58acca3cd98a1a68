// Package tree computes the hash tree over the events of a ledger: its root at any size, proofs that single
// events are in it, the blocks that are missing, and the seals: roots that were said.
//
// A ledger stores the hashes of whole blocks of events. A [Tree] joins them with the events that are in no
// block yet, as package proof says. [Extend] adds the blocks that are missing; sweepers call it, so that no
// command that changes a job does. The texts of the leaves come from a [Source], because the ledger need not
// hold all events: [Events] are those that it holds.
//
// Files in reading order: tree.go, roots_of_sizes.go, source.go, extend.go, seal.go; store.go has the
// tables of blocks and of seals.
//
// Held by TestTreeRootIsThatOfTheEvents, TestTreeProvesNoEditedEvent and
// TestExtendByTwoAtOnceWritesTheSame. This package is not part of the Go API, and may change in any
// release.
package tree
