// Package modeltest runs random commands against a model, a second and plain implementation of the rules, and
// compares every answer, every job and every event with it. It proves that the rules hold as documented: with
// stale tokens and copies of jobs, with several commands in a transaction, with commits that fail or whose
// answer is lost, and across a restart. A failure is reduced to the shortest sequence of commands that
// reproduces it.
//
// Nothing runs concurrently here: see packages lineartest and simtest for that.
//
//	model_test.go            the model of a job, and the test
//	enqueue_test.go, waiting_test.go, moves_test.go, rules_test.go    the commands and the rules
//	end_test.go              the final comparison
//
// To reproduce a failure, run the test with the -rapid.failfile or -rapid.seed that it prints.
//
// For tests only: its one test is TestModelAnyCommands.
package modeltest
