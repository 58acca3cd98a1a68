package main

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
)

// ownerVerb answers "who had this job when it happened".
func ownerVerb(p *program) cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "owner", Group: cli.GroupAudit, Usage: "show who held a job at a moment",
		About: "A claim holds from the moment of its event claimed until right before that of its end. A lease " +
			"that had run out held on until another process reclaimed the job, so its worker counts as the owner " +
			"until then.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{&cli.StringFlag{Name: "as-of",
			Usage: "the moment: a `TIME`, or a place in the ledger, pos:N", Required: true}},
		Renamed: map[string]string{"at": "as-of"},
		Examples: []cli.Example{
			{"jobledger owner 01KDY9FY88 --as-of 14:30", "who held it at half past two"},
			{"jobledger owner 01KDY9FY88 --as-of pos:4711 --json", "right after that event, for a script"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobref.OneFromLine(c)
			if err != nil {
				return err
			}
			var o ownership
			err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
				if o.at, _, err = p.MomentFlag(c, "as-of", tx); err != nil {
					return err
				}
				n, err := ref.AsOf(o.at).Number(c.Context, tx)
				if err != nil {
					return err
				}
				if o.id, err = projection.IDOf(c.Context, tx, n); err != nil {
					return err
				}
				o.state, o.claim, err = attempts.OwnerAt(c.Context, tx, n, o.at)
				return err
			})
			if err != nil {
				return err
			}
			return p.printOwner(o)
		},
	})
}

// ownership is who held a job at a moment.
type ownership struct {
	id    event.JobID
	at    projection.Moment
	state event.State
	claim attempts.Attempt // zero if there is none
}

type ownerJSON struct {
	Job     event.JobID `json:"job"`
	At      string      `json:"at"`
	Pos     int64       `json:"pos"`
	State   *string     `json:"state"`
	Worker  *string     `json:"worker"`
	Boot    *string     `json:"boot"`
	Host    *string     `json:"host"`
	PID     *int        `json:"pid"`
	Attempt *int        `json:"attempt"`
	Since   *string     `json:"since"`
	Until   *string     `json:"until"` // null: it has not ended
	ID      event.JobID `json:"id"`    // of the job, too
}

func (p *program) printOwner(o ownership) error {
	a, held := o.claim, o.claim.Pos > 0
	if p.JSON {
		out := ownerJSON{Job: o.id, ID: o.id, At: render.JSONTime(o.at.At), Pos: o.at.Pos,
			State: render.TextOrNull(o.state.String())}
		if held {
			out.Worker, out.Boot, out.Host = render.TextOrNull(a.Worker.Name), render.TextOrNull(a.Worker.Boot),
				render.TextOrNull(a.Worker.Host)
			out.PID, out.Attempt = &a.Worker.PID, &a.Attempt
			out.Since, out.Until = render.TimeOrNull(a.ClaimedAt), render.TimeOrNull(a.EndedAt)
		}
		if err := p.PrintJSON(out); err != nil {
			return err
		}
	}
	moment := fmt.Sprintf("%s (pos %d)", p.FormatMillis(o.at.At), o.at.Pos)
	switch {
	case o.state == 0:
		return cli.Exitf(cli.ExitNothing, "no worker held job %s at %s: it was not enqueued yet", o.id, moment)
	case !held:
		return cli.Exitf(cli.ExitNothing, "no worker held job %s at %s: it was %s", o.id, moment, o.state)
	case p.JSON:
		return nil
	}
	until := "now"
	if !a.EndedAt.IsZero() {
		until = fmt.Sprintf("%s (%s, %s)", p.FormatMillis(a.EndedAt), render.Briefly(a.EndedAt.Sub(a.ClaimedAt)),
			a.Outcome)
	}
	return p.PrintPairs([2]string{"job", string(o.id)}, [2]string{"at", moment},
		[2]string{"state", o.state.String()},
		[2]string{"owner", a.Worker.Name}, [2]string{"process", render.Process(a.Worker)}, [2]string{"boot",
			a.Worker.Boot},
		[2]string{"attempt", fmt.Sprint(a.Attempt)}, [2]string{"since",
			p.FormatMillis(a.ClaimedAt)}, [2]string{"until", until})
}
