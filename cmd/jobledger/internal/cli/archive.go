package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// ArchiveEnv is the environment variable that says where the archive is.
const ArchiveEnv = "JOBLEDGER_ARCHIVE"

// ArchiveFlag is --archive: where the archive is.
func ArchiveFlag() Flag {
	return &StringFlag{Name: "archive", Usage: "the folder of the archive's files: `DIR`",
		EnvVars: []string{ArchiveEnv}}
}

// ArchiveFolder returns the folder of the archive of a ledger: the one that was given, or else the one next
// to the ledger's file; "" for a ledger that has none.
func ArchiveFolder(given string, store *ledger.Store) string {
	switch {
	case given != "":
		return given
	case ledger.IsServerAddress(store.DSN()):
		return ""
	}
	return store.Path() + archive.Suffix
}

// KeeperEvery and KeeperEvents are those of an [archive.Keeper]; zero is its default. Tests set them.
var (
	KeeperEvery  time.Duration
	KeeperEvents int64
)

// ArchiveKeeper returns what carries out the archive policy of a ledger, where its archive is known.
func ArchiveKeeper(service *commands.Service, actor string) *archive.Keeper {
	logs, err := LogFolder(service.Store.Path())
	if err != nil { // there are none
		logs = ""
	}
	return &archive.Keeper{Service: service, Actor: actor, Logs: logs, Every: KeeperEvery, Events: KeeperEvents,
		Dir: ArchiveFolder(os.Getenv(ArchiveEnv), service.Store)}
}

// WithArchive returns v, which only reads, so that it also answers about what has left the ledger: it is run
// once more on a whole copy, where it needs events that are in the archive or a job that is not in the
// ledger.
func (p *Program) WithArchive(v Verb) Verb {
	v.Flags = append(v.Flags[:len(v.Flags):len(v.Flags)], ArchiveFlag(),
		&BoolFlag{Name: "live", Usage: "only what is in the ledger, not what is archived",
			DisableDefaultText: true})
	v.Exits = append(v.Exits[:len(v.Exits):len(v.Exits)], ExitNothing, ExitDiscrepancy)
	run := v.Run
	v.Run = func(c *Context) error {
		if p.Opened != nil { // by serve, which says what it can answer
			return run(c)
		}
		p.Live = c.Bool("live")
		err := run(c)
		if p.Live || !errors.Is(err, projection.ErrArchived) && !errors.Is(err, commands.ErrNoJob) {
			return err
		}
		return p.onWholeCopy(c, err, run)
	}
	return v
}

// onWholeCopy runs a verb that failed with err on a copy of the ledger as if nothing had left it.
func (p *Program) onWholeCopy(c *Context, err error, run func(*Context) error) error {
	service, openErr := p.Open(c.Context)
	if openErr != nil {
		return err
	}
	defer service.Store.Close()
	dir := ArchiveFolder(c.String("archive"), service.Store)
	if !errors.Is(err, projection.ErrArchived) {
		if may, lookErr := mayBeArchived(c, service.Store, dir); lookErr != nil || !may {
			return errors.Join(err, lookErr)
		}
	}
	if dir == "" {
		return WithHint(Exitf(ExitNothing, "%w", err), "--archive DIR or %s says where the archive is", ArchiveEnv)
	}
	temp, tempErr := os.MkdirTemp("", "jobledger-whole-")
	if tempErr != nil {
		return tempErr
	}
	defer os.RemoveAll(temp)
	whole, openErr := ledger.Open(c.Context, "sqlite:"+filepath.Join(temp, "whole.db")+"?sync=normal")
	if openErr != nil {
		return openErr
	}
	defer whole.Close()
	whole.Whole, whole.Exclusive = true, true
	if err := p.announceCopy(c.Context, service.Store, dir); err != nil {
		return err
	}
	if err := archive.Copy(c.Context, service.Store, dir, whole); err != nil {
		return err
	}
	p.Opened = whole
	defer func() { p.Opened = nil }()
	return run(c)
}

// ArchivedJob returns the number, the id, the queue, the state and the last attempt of the archived job that
// has the id prefix, or whose id begins so; the error err, with which it was not found in the ledger, if
// there is none or the archive is not known.
func ArchivedJob(ctx context.Context, service *commands.Service, prefix string, err error) (j projection.Job,
	_ error) {
	dir := ArchiveFolder(os.Getenv(ArchiveEnv), service.Store)
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
func (p *Program) announceCopy(ctx context.Context, store *ledger.Store, dir string) error {
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
func mayBeArchived(c *Context, store *ledger.Store, dir string) (may bool, err error) {
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
