// Package burst carries out the usual turn of a worker in one statement of a database server: the jobs that
// it finished succeed, and it gets the next ones. [Turn.Plan] is for ledger.Store.WriteBurst.
//
// How it works. BEGIN, the lock of writers, one statement, and COMMIT are sent at once; the payloads of the
// claimed jobs are read after the commit. The statement finds the tail and the clock, ends jobs by
// compare-and-swap, takes the head of one lane, and appends the events. So the lock is held for as long as the
// server works, and never waits for the network.
//
// Why it is right. The rules are those of package commands and projection.Evolve, and stand nowhere else. Each
// turn asks them before it is sent, and again of the rows that come back. Before, for the jobs to end and for a
// sample of a job to claim: where the rules would write anything that the statement does not, there is no
// burst. Afterwards, with the true pos and time: their answers are the jobs that the worker gets. The
// statement divides by zero, and so undoes everything, unless the tail is where the cache of lanes can follow,
// nothing waits for other jobs, the time has not run back, each compare-and-swap found its row, and each job
// taken is plain: with no column that could make the rules say something else. Then, as where there is no
// burst, the turn is carried out by functions of ledger.Store.Write, which judge everything. In tests, each
// burst is compared with the rows that journal.Record would have written (ledger.CheckBursts), and verify
// folds all events in any case.
//
// Files: turn.go (what a turn is, before and after), statement.go (the SQL, and what it may do).
package burst
