// Package burst carries out the normal turn of a worker in one statement of a database server: the jobs that
// it finished succeed, and it gets the next ones. [Turn.Plan] is for ledger.Store.WriteBurst.
//
// # How it works
//
// BEGIN, the lock of writers, one statement, and COMMIT are sent at once. The payloads of the claimed jobs
// are read after the commit. The statement finds the tail and the clock, ends jobs by compare-and-swap, takes
// the head of one lane, and appends the events. So the lock is held for as long as the server works, and
// never waits for the network.
//
// # Why it is right
//
// The rules are those of package commands and of projection.Evolve, and are written nowhere else. Each turn
// asks them before it is sent, for the jobs that end and for a sample of a job to claim: where they would
// write anything that the statement does not, there is no burst. It asks them again of the rows that come
// back, with the true pos and time: the answers are the jobs that the worker gets.
//
// The statement divides by zero, and so undoes everything, unless all of this holds: the tail is where the
// cache of lanes can follow, no job waits for another one, the time has not run back, each compare-and-swap
// found its row, and each job taken is plain. That is one without a column that could make the rules say
// something else. Otherwise functions of ledger.Store.Write carry out the turn, as where there is no burst,
// and these judge everything.
//
// In tests, each burst is compared with the rows that journal.Record would have written (ledger.CheckBursts).
// As of any event, verify compares the tables with what the events of bursts add up to.
//
// Files: turn.go (what a turn is, before and after), statement.go (the SQL, and what it may do).
//
// Held by TestPostgresBurstEqualsWrite, TestPostgresBurstWithALostJob and TestPostgresBurstWithLostAnswer
// of package commands.
package burst
