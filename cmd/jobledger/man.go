package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
)

// synopsis is the usage line that cli makes from the flags; Usage says it as help does.
var synopsis = regexp.MustCompile(`(?s)\.SH SYNOPSIS\n.*?\.SH GLOBAL`)

// manVerb prints the manual page. cli writes most of it from the commands and their flags; exit codes and
// environment, which it leaves out, follow.
func manVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "man", Group: cli.GroupSetUp, Usage: "print the manual page, in roff",
		Examples: []cli.Example{
			{"jobledger man | man -l -", "read it"},
			{"jobledger man > /usr/local/share/man/man1/jobledger.1", "install it"},
		},
		Run: func(c *cli.Context) error {
			verbs := slices.Clone(p.verbs()) // in the order of help
			slices.SortStableFunc(verbs, func(a, b cli.Verb) int {
				return cmp.Compare(slices.Index(cli.Groups, a.Group), slices.Index(cli.Groups, b.Group))
			})
			app := p.App(c.App.Flags, verbs, nil)
			app.Setup()
			for _, v := range verbs {
				app.Command(v.Name).UsageText = v.Manual()
			}
			page, err := app.ToManWithSection(1)
			if err != nil {
				return fmt.Errorf("write the manual page: %w", err)
			}
			codes := words.Of(fault.ExitMeanings, func(m fault.ExitMeaning) int { return m.Code })
			topics, err := p.Topics()
			if err != nil {
				return err
			}
			rows := append([][2]string{{"jobledger help TOPIC", "shows one of these pages."}},
				cli.TopicRows(topics)...)
			page = synopsis.ReplaceAllLiteralString(page, ".SH SYNOPSIS\n"+app.UsageText+"\n\n.SH GLOBAL")
			page = strings.TrimRight(page, "\n") + "\n" +
				cli.RoffSection("EXIT STATUS", cli.ExitRows(codes)) +
				cli.RoffSection("ENVIRONMENT", cli.EnvironmentRows(c.App.Flags, p.verbs())) +
				cli.RoffSection("TOPICS", rows)
			_, err = p.Stdout.WriteString(cli.RoffASCII(page))
			return err
		},
	}
}
