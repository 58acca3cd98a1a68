package jobverb

import (
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/when"
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
	case c.IsSet("run-at"):
		t, err = when.ReadNext("--run-at", c.String("run-at"), p.Now())
		return t, err == nil, err
	}
	return t, false, nil
}
