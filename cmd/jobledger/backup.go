package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"jobledger/commands"
)

// backupVerb copies a ledger that is in use.
func backupVerb(p *program) verb {
	return verb{
		name: "backup", group: groupLedger, usage: "write a consistent copy of the ledger while others use it",
		about: "The copy holds everything up to one moment. It appears under its name only when it is whole and on disk. " +
			"Payloads are in it, so only you may read it. Never copy the file of a ledger by other means while it is in use. " +
			"It is for ledgers in files: one in PostgreSQL is copied by pg_dump, or by what else makes backups there.",
		args: "FILE", minArgs: 1, maxArgs: 1,
		examples: []example{
			{"jobledger backup jobs-$(date +%F).db", "a copy under today's date; a file that exists is never overwritten"},
			{"jobledger backup jobs.bak && jobledger verify --db jobs.bak", "check the copy like any ledger"},
		},
		exits: []int{exitConflict, exitBusy},
		run: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // or the unfinished copy would stay
			defer stop()
			path := c.Args().First()
			if path == "" {
				return usagef("FILE is empty")
			}
			err := p.ofFiles("backup", "pg_dump makes a consistent copy while others write; 'jobledger export' writes the history")
			if err == nil {
				err = fileName("backup", path)
			}
			if err != nil {
				return err
			}
			service, err := p.open(ctx)
			if err != nil {
				return err
			}
			defer service.Store.Close()
			tail, size, err := backup(ctx, service, path)
			if ctx.Err() != nil && err != nil {
				return exitf(exitUnexpected, "interrupted; there is no %s", path)
			}
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(struct {
					File   string `json:"file"`
					Bytes  int64  `json:"bytes"`
					Events int64  `json:"events"`
				}{path, size, tail})
			}
			return p.printLine(fmt.Sprintf("%s: %s, %s", path, count(tail, "event"), byteSize(size)))
		},
	}
}

// backup writes beside path first and gives the copy its name last, so that a file of that name is always a whole one.
func backup(ctx context.Context, service *commands.Service, path string) (tail, size int64, err error) {
	if err := freePlace(path); err != nil {
		return 0, 0, err
	}
	unfinished, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // readable by its owner only
	if err != nil {
		return 0, 0, noFolder(path, err)
	}
	defer os.Remove(unfinished.Name()) // by then it has another name, or is useless
	defer unfinished.Close()
	if tail, err = service.Store.Vacuum(ctx, unfinished.Name()); err != nil {
		return 0, 0, fmt.Errorf("backup to %s: %w", path, err)
	}
	if err := unfinished.Sync(); err != nil {
		return 0, 0, err
	}
	info, err := unfinished.Stat()
	if err != nil {
		return 0, 0, err
	}
	return tail, info.Size(), giveName(unfinished.Name(), path)
}

// byteSize is n for people, with the exact number where that is another.
func byteSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB (%d bytes)", float64(n)/(1<<30), n)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/(1<<20), n)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB (%d bytes)", float64(n)/(1<<10), n)
	}
	return count(n, "byte")
}
