// Package state says how jobs and queues are doing now, as values with sentences: why a job is in its
// state ([Explain]), and what about a queue may need attention ([Concerns]). It reads the ledger and prints
// nothing; the verbs why and status print it, and a server can send the same values as JSON.
//
// It also reads what such a page needs: a whole job, now or in the past ([ReadJob]), what a job
// is ([What]), and whether a queue has a pause ([NamedQueue]).
//
// Held by TestConcernsOfLeases and TestConcernsOfPausedQueue here, and by TestServiceIsOneDefinition and
// TestScripts/why of the program.
package state
