package jobverb

import (
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/ledger/event"
)

// RunAt reads --run-at or --delay; given is false when neither is there. What it refuses, it refuses whatever
// now is: so a recount cannot fail.
func RunAt(p *cli.Program, c *cli.Context) (t time.Time, given bool, err error) {
	delay, delayed := cli.DurationValue(c, "delay")
	switch {
	case delayed && c.IsSet("run-at"):
		return t, false, cli.Usagef("--run-at and --delay cannot be combined")
	case delayed:
		return p.Now().Add(delay), true, nil
	}
	return p.NextFlag(c, "run-at")
}

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
