package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/projection"
)

func demoVerb(p *program) verb {
	return verb{
		name: "demo", group: groupSetUp, usage: "watch jobs survive a killed worker, on real files",
		about: "Makes a ledger with one job for each file of a folder (at most 200, nothing of .git), starts two worker processes " +
			"that compute SHA-256 sums, kills one of them with SIGKILL while it holds a job, waits until every job is done all the " +
			"same, checks the sums, and shows who owned the job that changed hands. Takes some 6 seconds.\n" +
			"With --db it may be a ledger in PostgreSQL, in a schema or a database that has none yet.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: "folder", Usage: "the files of `DIR`", Value: "."},
			&cli.BoolFlag{Name: "force", Usage: "overwrite the ledger of an earlier demo, if it is a file"},
		},
		examples: []example{
			{"jobledger demo", "on the files of this folder; the ledger is demo.db"},
			{"jobledger demo --folder /etc --force", "on other files, over the last demo's ledger"},
			{"jobledger demo --db 'postgres://app@db.example/jobs?schema=demo'", "on PostgreSQL; DROP SCHEMA demo CASCADE removes it"},
		},
		exits: []int{exitNothing, exitConflict, exitDiscrepancy, exitTimedOut},
		run: func(c *cli.Context) error {
			if !c.IsSet("db") {
				p.db = "demo.db"
			}
			d := &demo{program: p, out: p.stdout}
			return d.run(c.Context, c.String("folder"), c.Bool("force"))
		},
	}
}

const (
	demoQueue = "demo"
	demoFiles = 200
)

// demo is one run of the demonstration.
type demo struct {
	*program
	out     io.Writer
	service *commands.Service
	sums    map[ledger.JobID]string // what each job must find out
	ids     []ledger.JobID
}

// say prints a line at once: a demo is watched.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...)
	_ = d.flush()
}

func (d *demo) run(ctx context.Context, folder string, force bool) error {
	if err := d.makeRoom(ctx, force); err != nil {
		return err
	}
	files, err := filesOf(folder)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return exitf(exitNothing, "there is no regular file in %s", folder)
	}
	if d.service, err = d.openOrCreate(ctx); err != nil {
		return err
	}
	defer d.service.Store.Close()
	if err := d.enqueue(ctx, files); err != nil {
		return err
	}
	d.say("%d jobs enqueued in %s, one for each file of %s", len(files), shown(d.db), folder)
	victim, err := d.work(ctx)
	if err != nil {
		return err
	}
	return d.audit(ctx, victim)
}

// makeRoom removes the ledger of an earlier demo if it may, and nothing that is not a ledger.
func (d *demo) makeRoom(ctx context.Context, force bool) error {
	if ledger.IsServerAddress(d.db) {
		return d.lookForRoom(ctx)
	}
	if _, err := os.Stat(d.db); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !force {
		return withHint(exitf(exitConflict, "%s is there already", d.db), "--force overwrites it")
	}
	store, err := ledger.OpenExisting(ctx, d.db)
	if err != nil && !errors.Is(err, ledger.ErrNoLedger) {
		return err
	}
	if store != nil {
		if err := store.Close(); err != nil {
			return err
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".bell", ".logs"} {
		if err := os.RemoveAll(d.db + suffix); err != nil {
			return err
		}
	}
	return os.RemoveAll(worker.LogFolder(d.db))
}

// lookForRoom makes sure that a ledger in PostgreSQL is new: what stands on a server is nothing for a demo to remove.
func (d *demo) lookForRoom(ctx context.Context) error {
	store, err := ledger.OpenExisting(ctx, d.db)
	if errors.Is(err, ledger.ErrNoLedger) {
		return nil // to make it shows whether the database is there
	}
	if err != nil {
		return err
	}
	defer store.Close()
	tail := int64(0)
	err = store.Read(ctx, func(tx *ledger.Tx) (err error) {
		tail, err = tx.Tail(ctx)
		return err
	})
	if err == nil && tail > 0 {
		err = withHint(exitf(exitConflict, "%s has events already; it was not touched", shown(d.db)), "%s", d.newLedger())
	}
	return err
}

// filesOf returns the absolute paths of the regular, readable files below folder.
func filesOf(folder string) (files []string, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == folder:
			return err
		case err != nil:
			return nil // what cannot be read is left out
		case entry.IsDir() && (entry.Name() == ".git" || strings.HasPrefix(entry.Name(), "demo.db")):
			return fs.SkipDir
		case !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), "demo.db") || strings.Contains(path, "\n"):
			return nil
		case len(files) == demoFiles:
			return fs.SkipAll
		}
		if f, err := os.Open(path); err == nil { // #nosec G122 -- only to see whether it can be read
			_ = f.Close()
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// enqueue makes a job for each file, and notes what it must find out.
func (d *demo) enqueue(ctx context.Context, files []string) error {
	jobs := make([]commands.Enqueue, len(files))
	for i, path := range files {
		jobs[i] = commands.Enqueue{Queue: demoQueue, Payload: []byte(path), Tags: map[string]string{"file": shortened(filepath.Base(path))}}
	}
	enqueued, err := d.service.Enqueue(ctx, d.actor, jobs...)
	if err != nil {
		return err
	}
	d.sums = make(map[ledger.JobID]string)
	for i, j := range enqueued {
		sum, err := sumOf(files[i])
		if err != nil {
			return err
		}
		d.ids, d.sums[j.ID] = append(d.ids, j.ID), sum
	}
	return nil
}

func shortened(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), commands.MaxTag)], "")
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// audit checks every result and shows what the ledger knows.
func (d *demo) audit(ctx context.Context, victim ledger.JobID) error {
	err := d.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		for _, id := range d.ids {
			j, _, err := projection.Get(ctx, tx, id)
			if err == nil {
				err = projection.LoadBodies(ctx, tx, &j)
			}
			if err != nil {
				return err
			}
			if got, _, _ := strings.Cut(string(j.Result), " "); got != d.sums[id] {
				return exitf(exitDiscrepancy, "job %s found %q for %s, want %s", id, got, j.Payload, d.sums[id])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.say("all %d jobs succeeded, and every sum is right; here is the job that changed hands:\n", len(d.ids))
	if err := d.runVerb(ctx, "history", string(victim)); err != nil {
		return err
	}
	d.say("")
	if err := d.runVerb(ctx, "verify"); err != nil {
		return err
	}
	d.say("\ntry next:\n  jobledger%[1]s history %[2]s\n  jobledger%[1]s events --worker doomed\n  jobledger%[1]s list --limit 10", d.dbWords(), victim)
	return nil
}

// runVerb runs another command on the demo's ledger, as the user would.
func (d *demo) runVerb(ctx context.Context, words ...string) error {
	defer func(json bool) { d.json = json }(d.json)
	return d.dispatch(ctx, append([]string{"--db", d.db}, words...), d.verbs())
}
