package operate

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
)

func (p *Verbs) Resume() cli.Verb {
	return cli.Verb{
		Name: "resume", Group: cli.GroupOperate, Usage: "hand out the jobs of a paused queue again",
		About: "A queue that is not paused stays so.",
		Flags: queueFlags("resume"),
		Examples: []cli.Example{
			{"jobledger resume -q mail --reason 'smtp is back'", "workers claim from mail again"},
		},
		Exits: []int{cli.ExitBusy},
		Run: func(c *cli.Context) error {
			return p.eachQueue(c, (*commands.Service).Resume)
		},
	}
}
