package main

import (
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
)

func migrateVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "migrate", Group: cli.GroupSetUp, Usage: "bring a ledger's tables up to date",
		About: "A ledger in a file is also migrated by every command that opens it. On a server, only migrate " +
			"does so, as the schema's owner; other commands refuse an older ledger. It waits for the writers, and " +
			"they for it. Programs of the previous version go on if the new schema allows it: migrate first, then " +
			"replace the workers one after the other.\n\n" +
			"With --compact it also rewrites the ledger's file without its free pages, which erased payloads " +
			"left, and so that it may shrink later. Stop the workers first: while another process has the " +
			"ledger open, nothing is changed. The folder needs room for a second file, which is checked before " +
			"it takes the place of the first. It works on Linux only.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "compact", Usage: "also rewrite the file without its free pages"},
		},
		Examples: []cli.Example{
			{"jobledger migrate", "prints the version of the ledger's schema afterwards"},
			{"jobledger migrate --compact", "give the space of free pages back, while no worker runs"},
			{"jobledger migrate --json --db /var/lib/mail/jobs.db", "the same for a script"},
		},
		Exits: []int{cli.ExitBusy},
		Run: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // to remove the temporary file
			defer stop()
			if c.Bool("compact") {
				err := p.RequireFile("migrate --compact", "VACUUM FULL or pg_repack gives the space of tables back")
				if err != nil {
					return err
				}
			}
			if ledger.IsServerAddress(p.DB) {
				if err := ledger.Migrate(ctx, p.DB); err != nil {
					return err
				}
			}
			service, err := p.Open(ctx) // opening a file migrates it
			if err != nil {
				return err
			}
			path, version := service.Store.Path(), service.Store.SchemaVersion()
			if err := service.Store.Close(); err != nil {
				return err
			}
			out := migratedJSON{ledgerJSON: ledgerJSON{path, false, version}}
			pairs := [][2]string{{"schema", strconv.Itoa(version)}}
			if c.Bool("compact") {
				done, err := files.Compact(ctx, path)
				if err != nil {
					return compactError(err)
				}
				out.BytesBefore, out.BytesAfter = &done.Before, &done.After
				pairs = append(pairs, [2]string{"before", words.ByteSize(done.Before)},
					[2]string{"after", words.ByteSize(done.After)})
			}
			if p.JSON {
				return p.PrintJSON(out)
			}
			return p.PrintPairs(pairs...)
		},
	}
}

// migratedJSON is what migrate prints for programs; the sizes only if it has compacted the file.
type migratedJSON struct {
	ledgerJSON
	BytesBefore *int64 `json:"bytes_before,omitempty"`
	BytesAfter  *int64 `json:"bytes_after,omitempty"`
}

// compactError adds exit codes and hints to the errors of files.Compact.
func compactError(err error) error {
	if _, ok := errors.AsType[*files.InUseError](err); ok {
		return cli.WithHint(cli.Exitf(cli.ExitBusy, "%w", err),
			"stop the workers, and whatever else uses the ledger, and try again")
	}
	switch {
	case errors.Is(err, files.ErrUnsound):
		return cli.WithHint(cli.Exitf(cli.ExitDiscrepancy, "%w", err), "'jobledger verify' says what is wrong")
	case errors.Is(err, files.ErrOwner):
		return cli.WithHint(err, "compact as that user")
	}
	return err
}
