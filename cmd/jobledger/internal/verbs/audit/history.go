package audit

import (
	"errors"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// History answers "what happened to this job, when, and who did it".
func (p *Verbs) History() cli.Verb {
	return archived.With(p.Program, jobverb.ByName(cli.Verb{
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
			ref, _, err := jobverb.RefOf(c)
			if err != nil {
				return err
			}
			var h query.Happened
			var q query.History
			err = p.Read(c.Context, func(tx *ledger.Tx) (err error) {
				m, past, err := p.MomentFlag(c, "as-of", tx)
				if err != nil {
					return err
				}
				if past {
					q.At, ref = &m, ref.AsOf(m)
				}
				if q.Job, err = ref.Number(c.Context, tx); err == nil {
					h, err = q.Read(c.Context, tx)
				}
				return err
			})
			if errors.Is(err, commands.ErrNoJob) && ref.ID != "" && !p.Live && p.Archived == nil {
				var events []event.Event
				events, err = p.archivedHistory(c, ref.ID, err)
				h = q.Of(events)
			}
			if err != nil {
				return err
			}
			if len(h.Events) == 0 {
				return cli.Exitf(cli.ExitNothing, "job %s was not enqueued yet; now it is %s", h.Job, h.Now)
			}
			if q.At != nil && !p.JSON {
				p.Message("%s", p.Moment(*q.At))
			}
			return jobverb.PrintHistory(p.Program, h.Events)
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
