package main

import (
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger"
)

// whyVerb answers "why does nothing happen to this job".
func whyVerb(p *program) cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "why", Group: cli.GroupSee, Usage: "explain why a job is in its state",
		About: "What a queued job waits for: its time, a paused queue, its turn, or a worker that may take it; " +
			"who holds one that is running, and for how long yet; how one that has ended came to its end. Workers " +
			"that only claim, without 'jobledger work', do not say which queues they serve, so they are not " +
			"compared.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Examples: []cli.Example{
			{"jobledger why 01KDY9FY88", "what the job waits for"},
			{"jobledger why 01KDY9FY88 --json | jq .waits_for",
				"the same for a script: time, command, queue, turn, worker, owner"},
		},
		Exits: []int{cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobref.OneFromLine(c)
			if err != nil {
				return err
			}
			var why state.Why
			err = p.Read(c.Context, func(tx *ledger.Tx) error {
				j, err := ref.Find(c.Context, tx)
				if err != nil {
					return err
				}
				why, err = state.Explain(c.Context, tx, j, p.Now())
				return err
			})
			if err != nil {
				return err
			}
			if p.JSON {
				return p.PrintJSON(why)
			}
			return p.printParagraph(why.Why)
		},
	})
}

// printParagraph prints text in one line, or wrapped to the width of a terminal.
func (p *program) printParagraph(text string) error {
	text = render.Escape(text)
	lines := []string{text}
	if p.Width > 0 {
		lines = render.Wrap(text, min(p.Width, 100))
	}
	_, err := p.Stdout.WriteString(strings.Join(lines, "\n") + "\n")
	return err
}
