package prove

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/witness"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
)

// Witness shows what this host has seen of the ledger.
func (p *Verbs) Witness() cli.Verb {
	return cli.Verb{
		Name: "witness", Group: cli.GroupLedger, Usage: "show what this host saw of the ledger last",
		About: "Where sealing is on, every 'work' keeps the last checkpoint that it saw in a file of the user's " +
			"state folder ($XDG_STATE_HOME or ~/.local/state, jobledger/witness). It compares it with the ledger at " +
			"its start, every hour and at its end. If the ledger is not a continuation of it, because an older copy " +
			"took its place or its history was altered, the worker claims nothing and ends with 8. A restore by " +
			"'jobledger restore' is known from its event; the worker says so once, and goes on. It says once, too, " +
			"if the ledger at this address was sealed under another name.\n" +
			"--forget lets this host take the ledger as it is now. The old checkpoint stays in a second file, with " +
			"who did it and why.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "forget", Usage: "take the ledger as it is now", DisableDefaultText: true},
			jobverb.ReasonFlag(),
		},
		Examples: []cli.Example{
			{"jobledger witness", "compare the ledger with what this host saw last; 8 if they differ"},
			{"jobledger witness --forget --reason 'restored the snapshot of 02:00'",
				"the difference is known and right"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitDiscrepancy},
		Run:   p.witness,
	}
}

func (p *Verbs) witness(c *cli.Context) error {
	forget := c.Bool("forget")
	switch {
	case forget && c.String("reason") == "":
		return cli.Usagef("--forget needs --reason")
	case !forget && c.IsSet("reason"):
		return cli.Usagef("--reason needs --forget")
	}
	state, err := logs.StateFolder()
	if err != nil {
		return err
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	w := witness.In(state)
	seen, err := w.Look(c.Context, service.Store)
	if text := seen.Renamed(); text != "" {
		p.Message("%s", text)
	}
	if err == nil && !seen.Sealed {
		err = commands.ErrNotSealing
	}
	if err != nil {
		return err
	}
	if seen.Before == nil {
		return cli.Exitf(cli.ExitNothing, "this host has not seen %s yet", seen.Origin)
	}
	if forget {
		before, _, err := w.Forget(seen.Origin, p.Actor, c.String("reason"), p.Now())
		if err == nil {
			p.Message("this host has forgotten that %s had %s; %s.forgotten has the checkpoint", before.Origin,
				words.Count(before.Size, "event"), seen.File)
		}
		return err
	}
	if p.JSON {
		err = p.PrintJSON(struct {
			Origin  string `json:"origin"`
			Size    int64  `json:"size"`
			Root    string `json:"root"`
			Verdict string `json:"verdict"`
			Ledger  int64  `json:"ledger_size"`
			File    string `json:"file"`
			Known   bool   `json:"restored"`
		}{seen.Origin, seen.Before.Checkpoint.Size, seen.Before.Checkpoint.Root.String(),
			string(seen.Before.Verdict), seen.Before.Events, seen.File, seen.Restored != nil})
	} else {
		err = p.PrintLine(fmt.Sprintf("%s: this host saw %s with the root %s", seen.Origin,
			words.Count(seen.Before.Checkpoint.Size, "event"), seen.Before.Checkpoint.Root))
	}
	if err == nil && !seen.Before.Same() {
		err = cli.Exitf(cli.ExitDiscrepancy, "%s", seen.Before)
	}
	return err
}
