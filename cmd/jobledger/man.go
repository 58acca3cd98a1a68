package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// manVerb prints the manual page. cli writes most of it from the commands and their flags; exit codes and
// environment, which it leaves out, follow behind.
func manVerb(p *program) verb {
	return verb{
		name: "man", group: groupSetUp, usage: "print the manual page, in roff",
		examples: []example{
			{"jobledger man | man -l -", "read it"},
			{"jobledger man > /usr/local/share/man/man1/jobledger.1", "install it"},
		},
		run: func(c *cli.Context) error {
			app := p.app(c.App.Flags, p.verbs(), nil)
			app.Setup()
			for _, v := range p.verbs() {
				app.Command(v.name).UsageText = v.manual()
			}
			page, err := app.ToManWithSection(1)
			if err != nil {
				return fmt.Errorf("write the manual page: %w", err)
			}
			var codes []int
			for _, m := range exitMeanings {
				codes = append(codes, m.code)
			}
			page = strings.TrimRight(page, "\n") + "\n" +
				roffSection("EXIT STATUS", exitRows(codes)) +
				roffSection("ENVIRONMENT", environmentRows(c.App.Flags, p.verbs()))
			_, err = p.stdout.WriteString(roffASCII(page))
			return err
		},
	}
}
