// Package simtest simulates hours of several processes on one ledger in seconds: workers, sweepers, a
// producer and an operator, each with its own Store and its own clock. Service, Sweeper, Store and SQLite are
// real. Time and faults are simulated: lost requests and answers, commits of unknown outcome, frozen and
// killed processes, clocks that jump. An oracle checks each answer and each event. Every choice comes from a
// seed, so the same seed gives the same history.
//
// Variants with one broken rule prove that the oracle detects violations.
//
//	simulation_test.go            the tests, and a run by its seed
//	world_test.go                 the world: clocks, faults, the loop
//	process_test.go, client_test.go, worker_test.go    the actors
//	oracle_test.go, verdict_test.go                    what must be true
//	sabotage_test.go              the broken variants
//
// To reproduce a failure: go test ./commands/internal/simtest -run TestSimulation -seed N.
//
// For tests only. Held by TestSimulationFindsSabotage and TestSimulationIsDeterministic.
package simtest
