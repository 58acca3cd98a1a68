// Package queues goes along the transitions of jobs and says what became of the queues: [Depth] counts their
// jobs. It asks nothing that a user named; package query does.
//
// TestDepthEqualsTheFold and TestMomentsEqualFold in package query hold it.
package queues
