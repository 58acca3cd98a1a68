package main

import "jobledger/cmd/jobledger/internal/cli"

// helpVerb shows the help of a command, as --help does, or a page of the documentation.
func helpVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "help", Usage: "show help", Args: "[COMMAND|TOPIC]", MaxArgs: 1,
		About: "The topics are the pages of the documentation. On a terminal, $PAGER or less shows them.",
		Examples: []cli.Example{
			{"jobledger help version", "the same as jobledger version --help"},
			{"jobledger help topics", "the pages of the documentation, one line each"},
			{"jobledger help operations", "one of them"},
		},
		Run: func(c *cli.Context) error {
			return p.Help(c.Args().First(), p.verbs())
		},
	}
}
