// Package query answers questions about a ledger, each by one maker: a struct is the question, its method
// Read the answer, of one snapshot. Commands, pages and programs print what it returns.
//
//	span, err := query.Window{From: query.At(since)}.Resolve(ctx, tx, now)
//	waits, err := query.Waits{Span: span}.Read(ctx, tx)
//
// A [Window] is what a user asked for, and [InputError] says what is wrong with it. A [Span] is what that
// means in a ledger. [Attempts] are claims from beginning to end, [Owner] is who held a job, [Waits] is how
// long jobs waited, [Depth] how many were open, and [Series] both and more, step by step. [Silent] is which
// worker processes fell silent. [Percentile] is the one rule for percentiles. Since when a job is ready says
// [jobledger/projection/follow.Ready].
//
// Held by TestAttemptsAsOf, TestWaitsAreOfReadyJobs, TestDepthEqualsTheFold, TestWindowRefuses and
// TestPercentile here, and by TestAnswersOfWaits of the program.
package query
