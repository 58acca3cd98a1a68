package maintain

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/words"
)

// Backup copies a ledger that may be in use.
func (p *Verbs) Backup() cli.Verb {
	return cli.Verb{
		Name: "backup", Group: cli.GroupLedger, Usage: "write a consistent copy of the ledger while others use it",
		About: "The copy holds everything up to one moment. It appears under its name when it is whole and on " +
			"disk. It contains payloads, so only you may read it. Never copy the file of a ledger by other means " +
			"while it is in use. It is for ledgers in files; use pg_dump, or another tool for PostgreSQL, for one " +
			"in PostgreSQL.",
		Args: "FILE", MinArgs: 1, MaxArgs: 1,
		Examples: []cli.Example{
			{"jobledger backup jobs-$(date +%F).db", "a copy under today's date; never overwrites a file"},
			{"jobledger backup jobs.bak && jobledger verify --db jobs.bak", "check the copy like any ledger"},
		},
		Exits: []int{cli.ExitConflict, cli.ExitBusy},
		Run: func(c *cli.Context) error {
			ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM) // to remove the temporary file
			defer stop()
			path := c.Args().First()
			if path == "" {
				return cli.Usagef("FILE is empty")
			}
			err := p.RequireFile("backup",
				"pg_dump makes a consistent copy while others write; 'jobledger export' writes the history")
			if err == nil {
				err = cli.CheckNewFile("backup", path)
			}
			if err != nil {
				return err
			}
			service, err := p.Open(ctx)
			if err != nil {
				return err
			}
			defer service.Store.Close()
			copied, err := files.Backup(ctx, service.Store, path)
			if ctx.Err() != nil && err != nil {
				return cli.Exitf(cli.ExitUnexpected, "interrupted; there is no %s", path)
			}
			if err != nil {
				return stagingError(err, path)
			}
			text := fmt.Sprintf("%s: %s, %s", path, words.Count(copied.Events, "event"), words.ByteSize(copied.Bytes))
			return p.JSONOrLine(struct {
				File   string `json:"file"`
				Bytes  int64  `json:"bytes"`
				Events int64  `json:"events"`
			}{path, copied.Bytes, copied.Events}, text)
		},
	}
}
