// Package keyframe keeps what the events up to some positions add up to: which jobs had not ended there, and
// how many had. A question about a moment begins at the keyframe before it and costs the events in between,
// not the whole ledger.
//
// A keyframe is made from events alone. Events never change, so neither does a keyframe, and one that is
// missing costs time, not an answer. [Extend] adds those that are due; sweepers call it, so that no command
// that changes a job does. audit.Verify compares keyframes with the events, and a rebuild removes wrong ones.
//
// Reading order: frame.go (what a keyframe says), store.go (the table).
//
// Held by TestFrameEqualsFold, TestAnswersWithAndWithoutKeyframes, TestVerifyFindsWrongKeyframes and
// TestExtendByManyAtOnce. This package is not part of the Go API, and may change in any release.
package keyframe
