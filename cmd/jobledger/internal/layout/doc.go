// Package layout lays out what the ledger holds for those who look at it: as a [render.Table] or lines for
// people, and as JSON for programs. Both forms of a thing are in one file: jobs, claims, owners, queues,
// workers, what changed between two moments.
//
//	t := layout.Workers(workers, time.Now()) // times are in the zone of now
//
// It takes values and a clock; it reads no ledger and prints nothing. Words, times and colors are those of
// package render.
package layout
