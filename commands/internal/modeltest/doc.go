// Package modeltest runs random commands against a second, plain implementation of the rules, a model, and
// compares every answer, every job and every event with it. It proves that the rules are as they are written
// down, also with stale tokens and copies of jobs, with several commands in a transaction, with commits that
// fail or whose answer is lost, and over a restart. A failure is reduced to the shortest sequence of commands
// that shows it.
//
// It does not run anything concurrently: that is for packages lineartest and simtest.
//
//	model_test.go            the model of a job, and the test
//	enqueue_test.go, moves_test.go, rules_test.go, end_test.go    the commands, the rules, the final comparison
//
// To reproduce a failure, run the test with the -rapid.failfile or -rapid.seed that it prints.
package modeltest
