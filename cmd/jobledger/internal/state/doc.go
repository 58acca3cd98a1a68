// Package state says how jobs and queues are doing now, as values with sentences: why a job is in its
// state ([Explain]), and what about a queue may need attention ([Concerns]). It reads the ledger and prints
// nothing; the verbs why and status print it, and a server can send the same values as JSON.
//
// It also reads what such a page needs: a whole job, now or in the past ([ReadJob], [ReadJobAsOf]), and the
// queues with their pauses ([Queues], [NamedQueue]), and what a job is ([What]).
//
// Held by TestConcernsOfLeases and TestConcernsOfPausedQueue here, and by TestServiceIsOneDefinition and
// TestScripts/why of the program.
package state
