// Package lineartest checks that the histories of several processes on one ledger are linearizable: that
// every answer can be explained by commands carried out one after the other, each between its call and its
// answer. Three processes with three clients each work on the same few jobs, for real and at the same time.
// Some commits fail or lose their answer, and some processes are killed.
//
// Variants of the program with known faults show that the checker finds them.
//
//	linear_test.go                the processes, and the test
//	api_test.go, clients_test.go  what a client may ask, and what it asks
//	model_test.go                 the sequential specification of a job
//	sabotage_test.go              the broken variants
//
// -histories sets how many histories are checked. Schedules are real, so that a failure cannot be repeated by
// a seed.
package lineartest
