package fault

// Exit codes, the same for every command. Scripts branch on them, so a number never changes its meaning;
// [ExitMeanings] describes them.
const (
	ExitOK           = 0
	ExitUnexpected   = 1
	ExitUsage        = 2
	ExitNothing      = 3
	ExitLeaseLost    = 4
	ExitCancelled    = 5
	ExitConflict     = 6
	ExitNoJob        = 7
	ExitDiscrepancy  = 8
	ExitNotSucceeded = 9
	ExitBusy         = 75
	ExitTimedOut     = 124
	ExitRunFailed    = 125
	ExitCannotRun    = 126
	ExitNotFound     = 127
)

// ExitMeaning is an exit code and its meaning for the caller.
type ExitMeaning struct {
	Code int
	Word string // the code of an error under --json; it never changes, as the number
	Text string
}

// ExitMeanings describes every exit code, in the order of the help and the manual page.
var ExitMeanings = []ExitMeaning{
	{ExitOK, "ok", "done"},
	{ExitUnexpected, "unexpected", "unexpected error"},
	{ExitUsage, "usage", "wrong usage: unknown command or flag, missing argument, value out of range"},
	{ExitNothing, "nothing", "nothing there: the queue is empty, or nothing matches"},
	{ExitLeaseLost, "lease_lost", "the lease is lost: the job may belong to another worker now"},
	{ExitCancelled, "cancelled", "the job is cancelled: stop working on it"},
	{ExitConflict, "conflict", "conflict: the job's state, key or content does not permit it"},
	{ExitNoJob, "no_job", "no such job"},
	{ExitDiscrepancy, "discrepancy", "a check found a discrepancy"},
	{ExitNotSucceeded, "not_succeeded", "the awaited job did not succeed"},
	{ExitBusy, "busy", "busy or unavailable: try again later"},
	{ExitTimedOut, "timed_out", "timed out waiting"},
	{ExitRunFailed, "run_failed", "run itself failed; every other code of run is its command's"},
	{ExitCannotRun, "cannot_run", "the worker's command cannot be run"},
	{ExitNotFound, "not_found", "the worker's command is not found"},
}

// WordOf returns the word of an exit code, that of [ExitUnexpected] if it is unknown.
func WordOf(code int) string {
	for _, m := range ExitMeanings {
		if m.Code == code {
			return m.Word
		}
	}
	return WordOf(ExitUnexpected)
}
