// Package queues goes along the transitions of jobs and says what became of the queues: [Depth] counts their
// jobs, [Causes] says for what they wait. It asks nothing that a user named; package query does.
//
// Held by TestDepthEqualsTheFold, TestMomentsEqualFold, TestCausesOfWaits and
// TestCausesTellNoWorkerFromAllBusy of package projection/query.
package queues
