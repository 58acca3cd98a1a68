package see

import (
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
)

// Why answers "why does nothing happen to this job".
func (p *Verbs) Why() cli.Verb {
	return archived.With(p.Program, jobverb.ByName(cli.Verb{
		Name: "why", Group: cli.GroupSee, Usage: "explain why a job is in its state",
		About: "What a queued job waits for: its time, a paused queue, its turn, or a worker that may take it; " +
			"who holds one that is running, and for how long yet; how one that has ended came to its end. Workers " +
			"that only claim, without 'jobledger work', do not say which queues they serve, so they are not " +
			"compared. With --as-of it explains the state that the job had at that moment, by what was paused, " +
			"queued and running then: a time, or a place in the ledger, pos:N. A copy that 'replay' made is " +
			"explained as of its own moment.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{cli.AsOfFlag()},
		Examples: []cli.Example{
			{"jobledger why 01KDY9FY88", "what the job waits for"},
			{"jobledger why 01KDY9FY88 --json | jq .waits_for",
				"the same for a script: time, command, queue, turn, worker, owner"},
			{"jobledger why 01KDY9FY88 --as-of 02:15", "what it waited for at a quarter past two"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobverb.RefOf(c)
			if err != nil {
				return err
			}
			var why state.Why
			var past cli.Past
			var j projection.Job
			err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
				if past, err = p.PastFlag(c, tx); err != nil {
					return err
				}
				if past.Given && !past.Copy {
					ref = ref.AsOf(past.Moment)
				}
				if j, err = ref.Find(c.Context, tx); err != nil {
					return err
				}
				why, err = state.Explain(c.Context, tx, j, past, p.Now())
				return err
			})
			switch {
			case err != nil:
				return err
			case why.State == "":
				return cli.Exitf(cli.ExitNothing, "job %s was not enqueued yet; now it is %s", j.ID, j.State)
			case p.JSON:
				return p.PrintJSON(print.WhyJSON(why, j.State, past))
			case past.Given && !past.Copy:
				why.Why += fmt.Sprintf(" Now it is %s.", j.State)
			}
			return p.printParagraph(why.Why)
		},
	}))
}

// printParagraph prints text in one line, or wrapped to the width of a terminal.
func (p *Verbs) printParagraph(text string) error {
	text = words.Escape(text)
	lines := []string{text}
	if p.Width > 0 {
		lines = words.Wrap(text, min(p.Width, 100))
	}
	_, err := p.Stdout.WriteString(strings.Join(lines, "\n") + "\n")
	return err
}
