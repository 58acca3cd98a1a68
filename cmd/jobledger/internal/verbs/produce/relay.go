package produce

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strconv"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/outbox"
)

func (p *Verbs) Relay() cli.Verb {
	return cli.Verb{
		Name: "relay", Group: cli.GroupProduce, Usage: "move the jobs of an outbox into the ledger",
		About: "An outbox is a table in a program's own database, SQLite or PostgreSQL, where it asks for jobs " +
			"in its own transactions: see 'jobledger help go'. relay moves each row into the ledger, in order, and " +
			"deletes it. The row has the id of the job, so that a row which was moved before is recognized: relay " +
			"may be killed at any time, and several may run at once. It goes on until it is interrupted, and then " +
			"ends with 0.\n" +
			"A row that the ledger does not take, because its key belongs to a job with another payload or because " +
			"it waits for a job that does not exist, stays in the table with the reason, and those after it go on. " +
			"With --drain the exit code is then 6.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the database with the outbox: `DSN`, a file or postgres://…",
				Required: true, EnvVars: []string{"JOBLEDGER_OUTBOX"}},
			&cli.BoolFlag{Name: "drain", Usage: "end when no row is left, and print how many jobs were made"},
			&cli.BoolFlag{Name: "migrate", Usage: "make the tables first, where they do not exist"},
		},
		Examples: []cli.Example{
			{"jobledger relay --from /var/lib/shop/shop.db", "until interrupted; rows are moved within 10 ms"},
			{"JOBLEDGER_OUTBOX=postgres://shop@db/shop jobledger relay", "notified of new rows, at once"},
			{"jobledger relay --from shop.db --drain", "what is there now"},
		},
		Exits: []int{cli.ExitConflict, cli.ExitBusy},
		Run: func(c *cli.Context) error {
			return p.relay(c.Context, c.String("from"), c.Bool("drain"), c.Bool("migrate"))
		},
	}
}

func (p *Verbs) relay(ctx context.Context, from string, drain, migrate bool) error {
	source, err := outbox.Open(ctx, from)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Exitf(cli.ExitUsage, "%w", err)
	}
	if err != nil {
		return err
	}
	defer source.Close()
	if migrate {
		if err := outbox.Migrate(ctx, source); err != nil {
			return err
		}
	}
	service, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	relay := &outbox.Relay{Service: service, From: source, Actor: p.ActorAs("outbox"),
		Log: slog.New(slog.NewTextHandler(p.Stderr, nil))}
	if !drain {
		return relay.Run(cli.UntilSignalled(ctx))
	}
	relay.Log = nil
	moved, err := relay.Drain(cli.UntilSignalled(ctx))
	if err != nil {
		return err
	}
	for _, row := range moved.Refused {
		p.Message("job %s is refused: %s", row.ID, row.Why)
	}
	if err := p.printMoved(moved); err != nil || len(moved.Refused) == 0 {
		return err
	}
	return cli.WithHint(cli.Exitf(cli.ExitConflict, "%s left in the outbox",
		words.Count(int64(len(moved.Refused)), "refused row")),
		"see its column refused; set it to NULL to try again")
}

// movedJSON is what relay --drain --json prints.
type movedJSON struct {
	Jobs     int           `json:"jobs"`
	Existing int           `json:"existing"`
	Refused  []refusedJSON `json:"refused"`
}

type refusedJSON struct {
	Job string `json:"job"`
	Why string `json:"why"`
}

func (p *Verbs) printMoved(m outbox.Moved) error {
	if !p.JSON {
		return p.PrintLine(strconv.Itoa(m.Jobs))
	}
	refused := make([]refusedJSON, len(m.Refused))
	for i, r := range m.Refused {
		refused[i] = refusedJSON{r.ID, r.Why}
	}
	return p.PrintJSON(movedJSON{m.Jobs, m.Existing, refused})
}
