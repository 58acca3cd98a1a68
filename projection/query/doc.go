// Package query answers questions about a ledger, each by one maker: a struct is the question, its method
// Read the answer, of one snapshot. Commands, pages and programs print what it returns.
//
//	span, err := query.Window{From: query.At(since)}.Resolve(ctx, tx, now)
//	waits, err := query.Waits{Span: span}.Read(ctx, tx)
//
// A [Window] is what a user asked for, and [InputError] says what is wrong with it. A [Span] is that window
// as positions of a ledger, and [Past] the moment that the question is about. [Attempts] are claims from
// beginning to end, [Owner] is who held a job, [Waits] is how long jobs waited, [Depth] how many were open,
// and [Series] both and more, step by step. [Failures] are failed attempts, grouped by cause, [Acts] what
// operators did. [Taken] and [Poison] are the jobs that were taken from workers, [Backlog] those that took
// too long, [Silent] the worker processes that fell silent. [Lanes] are who had which job when, as a picture
// shows it, and [Findings] what stands out in them. [Between] compares the ends of a window, [QueueMarks] and
// [Head] are about one queue. [Problems] are what is not well. [Jobs] and [Events] are lists, read a page of
// one snapshot at a time; [JobFilter] is a user's filter of jobs. [History] is what happened to a job, and
// [Queues] what was paused. [Percentile] is the one rule for percentiles. Since when a job is ready says
// [jobledger/projection/follow.Ready].
//
// Held by TestAttemptsAsOf, TestWaitsAreOfReadyJobs, TestDepthEqualsTheFold, TestWindowRefuses,
// TestPercentile, TestQueueFacts, TestActsFoldSpreadRetries and TestLanesOfManyFailures here, and by
// TestAnswersOfWaits and TestAnswersAreThoseOfTheExport of the program.
package query
