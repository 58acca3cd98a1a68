package prove

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/cmd/jobledger/internal/witness"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
)

// Witness shows what this host has seen of the ledger.
func (p *Verbs) Witness() cli.Verb {
	return cli.Verb{
		Name: "witness", Group: cli.GroupLedger, Usage: "show what this host saw of the ledger",
		About: "Where sealing is on, every 'work' keeps the last checkpoint that it saw in a file of the user's " +
			"state folder ($XDG_STATE_HOME or ~/.local/state, jobledger/witness). It compares it with the ledger at " +
			"its start, every hour and at its end. If the ledger is not a continuation of it, because an older copy " +
			"took its place, its history was altered, or the ledger at this address is not sealed or has another " +
			"name, the worker claims nothing and ends with 8. A restore by 'jobledger restore' is known from its " +
			"event; it excuses one difference, and the worker goes on, but says so at each start until the ledger " +
			"is accepted.\n" +
			"--accept lets this host take the ledger as it is now. Nothing is forgotten: without it, the command " +
			"prints the checkpoint of each ledger that was replaced, when, by whom and why. In the JSON it is a " +
			"text for 'jobledger verify --against'.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "accept", Usage: "take the ledger as it is now", DisableDefaultText: true},
			jobverb.ReasonFlag(),
		},
		Renamed: map[string]string{"forget": "accept"},
		Examples: []cli.Example{
			{"jobledger witness", "compare the ledger with what this host saw last; 8 if they differ"},
			{"jobledger witness --accept --reason 'restored the snapshot of 02:00'",
				"the difference is known and right"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitConflict, cli.ExitDiscrepancy},
		Run:   p.witness,
	}
}

func (p *Verbs) witness(c *cli.Context) error {
	accept := c.Bool("accept")
	switch {
	case accept && c.String("reason") == "":
		return cli.Usagef("--accept needs --reason")
	case !accept && c.IsSet("reason"):
		return cli.Usagef("--reason needs --accept")
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
	known := seen.Before != nil || len(seen.History) > 0
	switch {
	case err != nil:
		return err
	case !known && !seen.Sealed:
		return commands.ErrNotSealing
	case !known:
		return cli.Exitf(cli.ExitNothing, "this host has not seen %s yet", seen.Origin)
	case accept:
		if _, err = w.Accept(c.Context, service.Store, p.Actor, c.String("reason"), p.Now()); err == nil {
			p.Message("this host takes the ledger as it is; 'jobledger witness' lists what it saw before")
		}
		return err
	}
	if err := p.printSeen(seen); err != nil {
		return err
	}
	if seen.Before != nil && !seen.Before.Same() {
		return cli.Exitf(cli.ExitDiscrepancy, "%s", seen.Difference())
	}
	return nil
}

func (p *Verbs) printSeen(seen witness.Seen) error {
	var before prove.Compared
	root := ""
	if seen.Before != nil {
		before, root = *seen.Before, seen.Before.Checkpoint.Root.String()
	}
	saw := before.Checkpoint
	if p.JSON {
		return p.PrintJSON(struct {
			Origin  string                `json:"origin"`
			Size    int64                 `json:"size"`
			Root    string                `json:"root"`
			Verdict string                `json:"verdict"`
			Ledger  int64                 `json:"ledger_size"`
			File    string                `json:"file"`
			Known   bool                  `json:"restored"`
			History []witness.Replacement `json:"history"`
		}{cmp.Or(saw.Origin, seen.Origin), saw.Size, root, string(before.Verdict), before.Events, seen.File,
			seen.Restored != nil, append([]witness.Replacement{}, seen.History...)})
	}
	var lines []string
	if seen.Before != nil {
		lines = append(lines, fmt.Sprintf("%s: this host saw %s with the root %s", saw.Origin,
			words.Count(saw.Size, "event"), root))
	}
	for _, r := range seen.History {
		line := r.At.Format(time.RFC3339) + " " + r.What
		if r.Accepted {
			line += ", accepted by " + r.Actor
		}
		if line += ": " + r.Reason; r.Checkpoint != "" {
			line += "; this host had seen " + strings.Join(strings.Fields(r.Checkpoint), " ")
		}
		lines = append(lines, line)
	}
	return p.PrintLines(lines)
}
