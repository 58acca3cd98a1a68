// Package print lays out what the ledger holds for those who look at it: as a [words.Table] or lines for
// people, and as JSON for programs. Both forms of a thing are in one file: jobs, claims, owners, queues,
// workers, reports, a job's history, what changed between two moments.
//
//	t := print.Workers(workers, time.Now()) // times are in the zone of now
//
// It takes values and a clock; of a ledger it reads an owner ([ReadOwner]) only. Sentences, times and colors
// are those of package words.
//
// Held by TestTableOfEachReportFits80Columns and TestRowJSONHasNullWhereNothingIsKnown here, and by
// TestReadTranscript, TestHistoryCollapsesHeartbeats and TestDiffMatrixHasStatesThatOccur of the program.
package print
