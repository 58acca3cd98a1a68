// Package sqltext has the SQL that a page shows with its numbers: a statement over the views that gives the
// same. It runs none of them.
//
//	shown.SQL = sqltext.Counts("mail") // SELECT queue, state, count(*) FROM current WHERE queue = 'mail' …
//
// Held by TestPagesHaveSQLThatRuns, TestFindJobs and TestEventsLeaveOutKinds of the program.
package sqltext
