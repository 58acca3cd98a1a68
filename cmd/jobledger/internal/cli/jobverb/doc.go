// Package jobverb has what the verbs that change jobs have in common: open the ledger, find the jobs, ask
// for a command, print what became of them.
//
//   - jobs.go: [ByName] and [RefsOf], how a line names jobs; [FilterFlags] and [Asked], how it selects them
//   - owner.go: [AsOwner], for the owner of a claim, who shows its token: heartbeat, succeed, fail, release
//   - operator.go: [Operate], for an operator, on several jobs at once: cancel, retry, reschedule, erase
//   - runat.go: [RunAt], --run-at and --delay; [Backoff]
//   - history.go: [PrintHistory], for archived jobs too
//
// Held by TestScripts/jobref, TestScripts/bulk, TestScripts/heartbeat and TestDelayUsesLedgerClock of the
// program.
package jobverb
