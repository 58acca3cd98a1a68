package maintain

import (
	"errors"
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/keyframe"
)

// Rebuild repairs the tables after they were changed by other means.
func (p *Verbs) Rebuild() cli.Verb {
	return cli.Verb{
		Name: "rebuild", Group: cli.GroupLedger,
		Usage: "derive the tables of jobs and queues again from the events",
		About: "Rows that differ from what the events say are repaired, in one transaction, as are guards, " +
			"indexes and views that are missing or altered, which on PostgreSQL takes the schema's owner; that " +
			"this was done becomes an event itself. Workers go on while it looks for what differs, and wait only " +
			"while that is written; where a table is missing as a whole, they wait throughout, and leases may run " +
			"out. An event that cannot be understood stops it, and then nothing is changed.",
		Examples: []cli.Example{
			{"jobledger rebuild", "after 'jobledger verify' has found rows that differ"},
		},
		Exits: []int{cli.ExitDiscrepancy, cli.ExitBusy},
		Run: func(c *cli.Context) error {
			service, err := p.Open(c.Context)
			if err != nil {
				return err
			}
			defer service.Store.Close()
			r, err := service.Rebuild(c.Context, p.Actor)
			if errors.Is(err, projection.ErrIllegal) || errors.Is(err, ledger.ErrDamaged) ||
				errors.Is(err, ledger.ErrUnknownKind) {
				return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "nothing was changed: %w", err),
					"see 'jobledger verify'")
			}
			if err != nil {
				return err
			}
			if err := keyframe.Fill(c.Context, service.Store); err != nil {
				return err
			}
			if p.JSON {
				return p.PrintJSON(struct {
					Jobs     int64    `json:"jobs"`
					Changed  int64    `json:"changed"`
					Missing  int64    `json:"missing"`
					Extra    int64    `json:"extra"`
					Queues   int64    `json:"queues"`
					Repaired []string `json:"mended"` // the key is older than the word
					Frames   int64    `json:"keyframes,omitempty"`
					Limits   int64    `json:"limits,omitempty"`
					Groups   int64    `json:"groups,omitempty"`
					Departed bool     `json:"departed,omitempty"`
				}{r.Jobs, r.Changed, r.Missing, r.Extra, r.Queues, append([]string{}, r.Repaired...), r.Frames,
					r.Limits, r.Groups, r.Departed})
			}
			for _, o := range r.Repaired {
				if err := p.PrintLine(o + " repaired"); err != nil {
					return err
				}
			}
			if r.Frames > 0 {
				if err := p.PrintLine(words.Count(r.Frames, "wrong keyframe") + " removed"); err != nil {
					return err
				}
			}
			if r.Limits+r.Groups > 0 {
				text := fmt.Sprintf("rows of limits: %d changed; rows of groups: %d changed", r.Limits, r.Groups)
				if err := p.PrintLine(text); err != nil {
					return err
				}
			}
			if r.Departed {
				if err := p.PrintLine("the table departed is counted again"); err != nil {
					return err
				}
			}
			if r.Changed+r.Missing+r.Extra+r.Queues+r.Limits+r.Groups == 0 && !r.Departed {
				return p.PrintLine(fmt.Sprintf("%s derived again; every row was right already",
					words.Count(r.Jobs, "job")))
			}
			return p.PrintLine(fmt.Sprintf("%s derived again; rows of jobs: %d changed, %d added, %d removed; rows "+
				"of queues: %d changed",
				words.Count(r.Jobs, "job"), r.Changed, r.Missing, r.Extra, r.Queues))
		},
	}
}
