package operate

import (
	"errors"
	"fmt"
	"os"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

func (p *Verbs) Erase() cli.Verb {
	return bulkVerb(cli.Verb{
		Name: "erase", Group: cli.GroupLedger, Usage: "remove the payload, the results and the logs of jobs that " +
			"have ended, for good",
		About: "What happened to the job stays: its events, with its key, tags and error details, and sizes and " +
			"digests without the salt that would allow to guess at the bytes. A job that was erased cannot be " +
			"retried, and its key stays taken. The bytes are overwritten in the ledger's file and taken out of the " +
			"-wal file (PostgreSQL: they are gone from the tables, and their space is used again); from backups, " +
			"exports and copies you must remove them yourself. Of an archived job, named by its id, what is still " +
			"there is erased: a payload or result that was kept, the salt that its key needs, and its logs; the " +
			"archive has only digests. Of several jobs each is tried; the first failure " +
			"gives the exit code.",
		Args: "JOB…", MinArgs: 1, MaxArgs: cli.AnyNumber,
		Flags: []cli.Flag{&cli.StringFlag{Name: "reason", Usage: "why, for readers of the history: `TEXT`",
			Required: true}},
		Examples: []cli.Example{
			{"jobledger erase 01JB2Q… --reason 'ticket 4711: customer 17 asked for it'",
				"JOB is an id, or the beginning of one"},
			{"jobledger erase --tag customer=17 --reason 'ticket 4711: customer 17 asked for it'",
				"every job with this tag that has ended"},
		},
		Exits: jobverb.OperatorExits,
		Run:   p.erase,
	}, mayErase)
}

func (p *Verbs) erase(c *cli.Context) error {
	if c.String("reason") == "" {
		return cli.Usagef("--reason is empty")
	}
	path, _ := cli.SplitDSN(p.DB)
	checked, logsErr := logs.Folder(path)
	erased := 0
	done := func(_, after projection.Job) {
		erased++
		if checked != "" {
			logsErr = errors.Join(logsErr, attemptlog.Remove(checked, after.ID))
		}
	}
	command := commands.Erase{Reason: c.String("reason")}
	err := notBulk(c, mayErase)
	switch {
	case isBulk(c):
		err = p.bulk(c, bulkAct{past: "erased", may: mayErase, done: done,
			skip:   func(j projection.Job) bool { return j.Erased },
			choose: func(projection.Job) commands.Command { return command }})
	case err == nil:
		err = jobverb.OperateOrElse(p.Program, c, command, func(before, after projection.Job) string {
			done(before, after)
			if before.Erased {
				return fmt.Sprintf("job %s in %s was erased already", after.ID, after.Queue)
			}
			return fmt.Sprintf("job %s in %s is erased; its history stays", after.ID, after.Queue)
		}, func(service *commands.Service, ref find.Ref, err error) error {
			return p.eraseArchived(c, service, ref.ID, err, done)
		})
	}
	if erased > 0 {
		whole, checkErr := p.checkpoint(c)
		switch {
		case ledger.IsServerAddress(path):
			p.tellLeft(checkErr == nil && whole)
		case checkErr != nil || !whole:
			p.Message("what was erased stays in %s-wal until others who read the ledger now are done", path)
		}
	}
	if err == nil && logsErr != nil {
		err = fmt.Errorf("the payload and results are erased, but the logs are not: %w", logsErr)
	}
	return err
}

// eraseArchived erases what is left of a job that has left the ledger; err is the error of the search in the
// ledger.
func (p *Verbs) eraseArchived(c *cli.Context, service *commands.Service, id string, err error,
	done func(_, after projection.Job)) error {
	j, err := archived.Job(c.Context, service, find.Ref{ID: id}, err)
	if err != nil {
		return err
	}
	dir := cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), service.Store)
	what, changed, err := archive.Erase(c.Context, service, p.Actor, dir, string(j.ID), c.String("reason"))
	if err != nil {
		return err
	}
	done(j, j)
	switch {
	case !changed:
		p.Message("job %s in %s is archived, and nothing of its payload, results or salt is left", j.ID, j.Queue)
	default:
		p.Message("job %s in %s is archived; what was left of its payload, results and salt is erased, and the "+
			"digests in the archive stay", j.ID, j.Queue)
	}
	return p.JSONOnly(struct {
		ID     event.JobID `json:"id"`
		Bodies int64       `json:"bodies"` // erased
		Bytes  int64       `json:"bytes"`  // of these
	}{j.ID, what.Bodies, what.BodyBytes})
}

// tellLeft says where erased bytes still are when a server has done what it can.
func (p *Verbs) tellLeft(vacuumed bool) {
	if !vacuumed {
		p.Message("what was erased stays in the server's files until it has vacuumed the table bodies, which " +
			"the owner of that can hasten")
	}
	p.Message("what was erased stays in the server's WAL, and its archive, until that is over, and in " +
		"backups; what its command wrote, on other hosts where it ran")
}

func (p *Verbs) checkpoint(c *cli.Context) (whole bool, err error) {
	service, err := p.Open(c.Context)
	if err != nil {
		return false, err
	}
	defer service.Store.Close()
	return service.Store.Checkpoint(c.Context)
}
