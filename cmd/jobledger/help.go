package main

import "github.com/urfave/cli/v2"

// helpVerb is for those who type "jobledger help"; it does what --help does.
func helpVerb(p *program) verb {
	return verb{
		name: "help", usage: "show help", args: "[COMMAND]", maxArgs: 1,
		examples: []example{{"jobledger help version", "the same as jobledger version --help"}},
		run: func(c *cli.Context) error {
			return p.help(c.Args().First(), p.verbs())
		},
	}
}
