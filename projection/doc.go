// Package projection says what events mean: Evolve folds them into jobs and queues, and the tables hold what
// they add up to. The tables can be dropped and derived anew at any time, because the live path and the
// replay share Evolve.
package projection
