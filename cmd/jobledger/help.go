package main

import (
	"embed"

	"jobledger/cmd/jobledger/internal/cli"
)

// helpVerb shows the help of a command, as --help does, or a page of the documentation.
func helpVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "help", Usage: "show help", Args: "[COMMAND|TOPIC|all]", MaxArgs: 1,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "every command, as all", DisableDefaultText: true}},
		About: "The topics are the pages of the documentation. On a terminal, $PAGER or less shows them.",
		Examples: []cli.Example{
			{"jobledger help version", "the same as jobledger version --help"},
			{"jobledger help all", "every command, one line each"},
			{"jobledger help topics", "the pages of the documentation, one line each"},
			{"jobledger help operations", "one of them"},
		},
		Run: func(c *cli.Context) error {
			name := c.Args().First()
			if c.Bool("all") && name == "" {
				name = "all"
			}
			return p.Help(name, p.verbs())
		},
	}
}

// docs are the pages of the documentation, which help shows.
//
//go:embed docs/*.md
var docs embed.FS
