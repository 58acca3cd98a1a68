package main

import (
	"github.com/urfave/cli/v2"

	"jobledger/commands"
)

func resumeVerb(p *program) verb {
	return verb{
		name: "resume", group: groupOperate, usage: "hand out the jobs of a paused queue again",
		about: "A queue that is not paused stays so.",
		flags: queueFlags("resume"),
		examples: []example{
			{"jobledger resume -q mail --reason 'smtp is back'", "workers claim from mail again"},
		},
		exits: []int{exitBusy},
		run: func(c *cli.Context) error {
			return p.eachQueue(c, (*commands.Service).Resume)
		},
	}
}
