package jobcmd

import (
	"os"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/commands/worker"
)

// OfRun is the command of a run in the foreground: what its job carries, with this process's output, and
// every exit code but 0 a failure.
func OfRun(p *cli.Program, service *commands.Service) *worker.Command {
	return &worker.Command{Carried: true, DB: cli.AbsoluteDSN(p.DB), Supervisor: worker.SelfSupervisor(),
		Keeper: keeper(), Map: map[int]worker.Outcome{75: worker.OutcomeFail, 111: worker.OutcomeFail},
		Stdout: os.Stdout, Stderr: os.Stderr, ResultLimit: resultLimit, Logs: p.LogFolder(service)}
}
