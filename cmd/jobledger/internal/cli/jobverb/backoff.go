package jobverb

import (
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger/event"
)

// Backoff reads --backoff; zero if it is not there.
func Backoff(c *cli.Context) (b event.Backoff, err error) {
	if !c.IsSet("backoff") {
		return b, nil
	}
	if b, err = when.ParseBackoff(c.String("backoff")); err != nil {
		err = cli.Usagef("--backoff: %w", err)
	}
	return b, err
}
