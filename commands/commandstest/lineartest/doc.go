// Package lineartest checks that the histories of several processes on one ledger are linearizable: every
// answer can be explained by commands that are applied one after another, each between its call and its
// answer. Three processes with three clients each really work on the same few jobs concurrently. Some commits
// fail or lose their answer, and some processes are killed.
//
// Variants of the program with known faults show that the checker finds them.
//
//	linear_test.go      the processes, and the test
//	api.go, clients.go  what a client may ask, and what it asks
//	model.go            the sequential specification of a job
//	history.go          a ledger that clients work on, and what they were answered
//	outside.go          clients that come by another way, such as HTTP
//	sabotage_test.go    the broken variants
//
// -histories sets how many histories are checked. The schedules are real, so a seed cannot reproduce a
// failure.
//
// For tests only: TestHistoriesOverHTTPAreLinearizable of the server uses it too. Held by
// TestSabotageIsNotLinearizable. This package is not part of the Go API, and may change in any release.
package lineartest
