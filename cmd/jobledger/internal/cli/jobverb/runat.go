package jobverb

import (
	"time"

	"jobledger/cmd/jobledger/internal/cli"
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
