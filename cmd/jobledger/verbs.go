package main

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/verbs/audit"
	"jobledger/cmd/jobledger/internal/verbs/maintain"
	"jobledger/cmd/jobledger/internal/verbs/operate"
	"jobledger/cmd/jobledger/internal/verbs/produce"
	"jobledger/cmd/jobledger/internal/verbs/prove"
	"jobledger/cmd/jobledger/internal/verbs/see"
	"jobledger/cmd/jobledger/internal/verbs/work"
)

// verbs are all commands, in the order of the help.
func (p *program) verbs() []cli.Verb {
	var (
		produce  = produce.Verbs{Program: p.Program}
		work     = work.Verbs{Program: p.Program}
		operate  = operate.Verbs{Program: p.Program}
		see      = see.Verbs{Program: p.Program}
		audit    = audit.Verbs{Program: p.Program}
		maintain = maintain.Verbs{Program: p.Program}
		prove    = prove.Verbs{Program: p.Program}
	)
	return []cli.Verb{
		demoVerb(p),
		work.Work(),
		initVerb(p),
		migrateVerb(p),
		produce.Run(),
		produce.Enqueue(),
		produce.Schedule(),
		produce.Relay(),
		work.Claim(),
		work.Heartbeat(),
		work.Succeed(),
		work.Fail(),
		work.Release(),
		work.Exec(),
		operate.Cancel(),
		operate.Retry(),
		operate.Reschedule(),
		operate.Edit(),
		operate.Unblock(),
		operate.Pause(),
		operate.Resume(),
		operate.Limit(),
		operate.Queue(),
		operate.Inbox(),
		operate.Sweep(),
		see.Status(),
		see.List(),
		see.Show(),
		see.Why(),
		see.Logs(),
		see.Workers(),
		see.Queues(),
		see.Wait(),
		serveVerb(p),
		pipeVerb(p),
		tokenVerb(p),
		webhookVerb(p),
		audit.History(),
		audit.Attempts(),
		audit.Events(),
		audit.Owner(),
		audit.Diff(),
		audit.Report(),
		prove.Verify(),
		prove.Checkpoint(),
		prove.Prove(),
		prove.Witness(),
		prove.Seal(),
		maintain.Rebuild(),
		audit.Incident(),
		maintain.Replay(),
		maintain.Export(),
		maintain.Import(),
		operate.Erase(),
		maintain.Archive(),
		maintain.Backup(),
		maintain.Restore(),
		maintain.Doctor(),
		maintain.Bench(),
		versionVerb(p),
		completionVerb(p),
		manVerb(p),
		helpVerb(p),
	}
}
