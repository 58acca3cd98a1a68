package main

import "jobledger/cmd/jobledger/internal/cli"

// helpVerb is for those who type "jobledger help"; it does what --help does.
func helpVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "help", Usage: "show help", Args: "[COMMAND]", MaxArgs: 1,
		Examples: []cli.Example{{"jobledger help version", "the same as jobledger version --help"}},
		Run: func(c *cli.Context) error {
			return p.Help(c.Args().First(), p.verbs())
		},
	}
}
