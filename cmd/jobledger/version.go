package main

import (
	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/cli"
)

// versionVerb prints which build this is; also as "jobledger --version".
func versionVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "version", Group: cli.GroupSetUp, Usage: "print the version of this program",
		Examples: []cli.Example{
			{"jobledger version", "one line for a bug report"},
			{"jobledger version --json", "the same for a script"},
		},
		Run: func(*cli.Context) error {
			b := buildinfo.Read()
			if p.JSON {
				return p.PrintJSON(b)
			}
			return p.PrintLine(cli.ProgramName + " " + b.String())
		},
	}
}
