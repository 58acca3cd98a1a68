// Package archived is for verbs that also answer about what has left the ledger: [With] gives one the flag
// --archive and runs it on a whole copy where it needs one, [Job] finds an archived job, and [Keeper] carries
// out the archive policy.
package archived

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Flag is --archive: where the archive is.
func Flag() cli.Flag {
	return &cli.StringFlag{Name: "archive", Usage: "the folder of the archive's files: `DIR`",
		EnvVars: []string{cli.ArchiveEnv}}
}

// Every and Events are those of an [archive.Keeper]; zero is its default. Tests set them.
var (
	Every  time.Duration
	Events int64
)

// Keeper returns what carries out the archive policy of a ledger, where its archive is known.
func Keeper(service *commands.Service, actor string) *archive.Keeper {
	logs, err := cli.LogFolder(service.Store.Path())
	if err != nil { // there are none
		logs = ""
	}
	return &archive.Keeper{Service: service, Actor: actor, Logs: logs, Every: Every, Events: Events,
		Dir: cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), service.Store)}
}

// With returns v, which only reads, so that it also answers about what has left the ledger: it is run
// once more on a whole copy, where it needs events that are in the archive or a job that is not in the
// ledger.
func With(p *cli.Program, v cli.Verb) cli.Verb {
	v.Flags = append(v.Flags[:len(v.Flags):len(v.Flags)], Flag(),
		&cli.BoolFlag{Name: "live", Usage: "only what is in the ledger, not what is archived",
			DisableDefaultText: true})
	v.Exits = append(v.Exits[:len(v.Exits):len(v.Exits)], cli.ExitNothing, cli.ExitDiscrepancy)
	run := v.Run
	v.Run = func(c *cli.Context) error {
		if p.Opened != nil { // by serve, which says what it can answer
			return run(c)
		}
		p.Live = c.Bool("live")
		err := run(c)
		if p.Live || !errors.Is(err, projection.ErrArchived) && !errors.Is(err, commands.ErrNoJob) {
			return err
		}
		return onWholeCopy(p, c, err, run)
	}
	return v
}

// onWholeCopy runs a verb that failed with err on a copy of the ledger as if nothing had left it.
func onWholeCopy(p *cli.Program, c *cli.Context, err error, run func(*cli.Context) error) error {
	service, openErr := p.Open(c.Context)
	if openErr != nil {
		return err
	}
	defer service.Store.Close()
	dir := cli.ArchiveFolder(c.String("archive"), service.Store)
	if !errors.Is(err, projection.ErrArchived) {
		if may, lookErr := mayBeArchived(c, service.Store, dir); lookErr != nil || !may {
			return errors.Join(err, lookErr)
		}
	}
	if dir == "" {
		return cli.WithHint(cli.Exitf(cli.ExitNothing, "%w", err),
			"--archive DIR or %s says where the archive is", cli.ArchiveEnv)
	}
	temp, tempErr := os.MkdirTemp("", "jobledger-whole-")
	if tempErr != nil {
		return tempErr
	}
	defer os.RemoveAll(temp)
	if err := announceCopy(p, c.Context, service.Store, dir); err != nil {
		return err
	}
	whole, copyErr := archive.OpenCopy(c.Context, service.Store, dir, temp, true)
	if copyErr != nil {
		return copyErr
	}
	defer whole.Close()
	p.Opened = whole
	defer func() { p.Opened = nil }()
	return run(c)
}

// Job returns the number, the id, the queue, the state and the last attempt of the archived job that
// has the id prefix, or whose id begins so; the error err, with which it was not found in the ledger, if
// there is none or the archive is not known.
func Job(ctx context.Context, service *commands.Service, prefix string, err error) (j projection.Job,
	_ error) {
	dir := cli.ArchiveFolder(os.Getenv(cli.ArchiveEnv), service.Store)
	if dir == "" || prefix == "" {
		return j, err
	}
	events, _, archiveErr := archive.History(ctx, service.Store, dir, prefix)
	if errors.Is(archiveErr, commands.ErrNoJob) {
		return j, err
	}
	for _, e := range events {
		if b, ok := e.Body.(*event.Enqueued); ok {
			j.ID, j.N, j.Queue = e.Job, e.Pos, b.Queue
		}
		if e.Kind().HasSeq() {
			j.State, j.Attempt = e.To, max(j.Attempt, e.Attempt)
		}
	}
	return j, archiveErr
}

// copyPerSecond is how many events a second archive.Copy copies, about, as TestRemovalGivesSpaceBack
// measures it.
const copyPerSecond = 40_000

// announceCopy says that the whole history is read, and where that takes long, for about how long.
func announceCopy(p *cli.Program, ctx context.Context, store *ledger.Store, dir string) error {
	var events int64
	err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
		events, err = tx.Tail(ctx)
		return err
	})
	takes := ""
	if d := time.Duration(events) * time.Second / copyPerSecond; d >= time.Second {
		takes = fmt.Sprintf(", and the ledger: %s, for about %s", render.Count(events, "event"), render.Roughly(d))
	}
	p.Message("a part of what is asked for is in the archive: reading all of %s%s", dir, takes)
	return err
}

// mayBeArchived reports whether the job that the line names may have left the ledger.
func mayBeArchived(c *cli.Context, store *ledger.Store, dir string) (may bool, err error) {
	err = store.Read(c.Context, func(tx *ledger.Tx) error {
		h, err := projection.Horizon(c.Context, tx)
		may = h > 0
		return err
	})
	id := cmp.Or(c.Args().First(), c.String("job"))
	if err != nil || !may || id == "" || dir == "" {
		return may, err
	}
	_, _, err = archive.History(c.Context, store, dir, id)
	if errors.Is(err, commands.ErrNoJob) {
		return false, nil
	}
	return true, nil // also where several begin so, or a file is missing: the copy says which
}
