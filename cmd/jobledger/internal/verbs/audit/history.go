package audit

import (
	"errors"
	"slices"

	"jobledger/cmd/jobledger/internal/archived"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/historytext"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// History answers "what happened to this job, when, and who did it".
func (p *Verbs) History() cli.Verb {
	return archived.With(p.Program, jobref.Verb(cli.Verb{
		Name: "history", Group: cli.GroupAudit, Usage: "show what happened to a job, event by event",
		About: "Each line says when, how long after the event before, what happened, to which state that led, " +
			"and who did it. A write that was refused, because its lease was lost or the job had ended, reads " +
			"REFUSED and says why. With --as-of it ends at that moment: a time, or a place in the ledger, pos:N.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Flags: []cli.Flag{cli.AsOfFlag()},
		Examples: []cli.Example{
			{"jobledger history 01KDY9FY88", "the timeline of the job whose id begins with these letters"},
			{"jobledger history 01KDY9FY88 --json", "its events, one a line, with all that they say"},
			{"jobledger history 01KDY9FY88 --as-of 14:30", "what had happened by half past two"},
		},
		Exits: []int{cli.ExitNothing, cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobref.OneFromLine(c)
			if err != nil {
				return err
			}
			var events []event.Event
			var m projection.Moment
			var past bool
			err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
				if m, past, err = p.MomentFlag(c, "as-of", tx); past {
					ref = ref.AsOf(m)
				}
				if err != nil {
					return err
				}
				n, err := ref.Number(c.Context, tx)
				if err != nil {
					return err
				}
				for e, err := range tx.Events(c.Context, ledger.Filter{Job: n}) {
					if err != nil {
						return err
					}
					events = append(events, e)
				}
				return nil
			})
			if errors.Is(err, commands.ErrNoJob) && ref.ID != "" && !p.Live &&
				(p.Opened == nil || !p.Opened.Whole) {
				events, err = p.archivedHistory(c, ref.ID, err)
			}
			if err != nil {
				return err
			}
			if !past {
				return historytext.Print(p.Program, events)
			}
			known := events
			events = slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return e.Pos > m.Pos })
			if len(events) == 0 {
				return cli.Exitf(cli.ExitNothing, "job %s was not enqueued yet; now it is %s", known[0].Job,
					historytext.LastState(known))
			}
			if !p.JSON {
				p.Message("%s", p.Moment(m))
			}
			return historytext.Print(p.Program, events)
		},
	}))
}

// archivedHistory returns the events of a job that has left the ledger; the error err, with which it was not
// found there, if the archive has none either.
func (p *Verbs) archivedHistory(c *cli.Context, id string, err error) ([]event.Event, error) {
	service, openErr := p.Open(c.Context)
	if openErr != nil {
		return nil, err
	}
	defer service.Store.Close()
	dir := archived.Folder(c, service.Store)
	if dir == "" {
		return nil, err
	}
	events, _, archiveErr := archive.History(c.Context, service.Store, dir, id)
	if errors.Is(archiveErr, commands.ErrNoJob) {
		return nil, err
	}
	return events, archiveErr
}
