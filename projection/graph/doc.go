// Package graph says what a job waited for and what waits for it, over several steps, now and at a moment of
// the past. Package deps keeps what is open; this one reads also what has come about, from the references
// that jobs were enqueued with.
//
//	around, err := graph.Around{Job: j, At: projection.Now(time.Now()), Depth: 3}.Read(ctx, tx)
//
// Held by TestGraphIsThatOfTheEvents, TestGraphFoldsSiblings and TestDependenciesOfAJob. This package is not
// part of the Go API, and may change in any release.
package graph
