package work

import (
	"math"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/commands"
	"jobledger/projection"
)

func (p *Verbs) Heartbeat() cli.Verb {
	return jobverb.ByName(cli.Verb{
		Name: "heartbeat", Group: cli.GroupPrimitives, Usage: "extend the lease of a claim",
		About: "Send one every third of the lease. Exit code 4 or 5 means: stop working, the job is no longer " +
			"yours.\n" + jobverb.AboutOwner,
		Args: "[JOB]", MaxArgs: 1,
		Flags: jobverb.OwnerFlags(
			cli.DurationFlag("lease", "hold for another `D` from now; by default as long as the last time", "",
				commands.MinLease, commands.MaxLease, false),
			&cli.StringFlag{Name: "progress", Usage: "how far the work is: `P` from 0 to 1, or a percentage such as " +
				"40%"},
			&cli.StringFlag{Name: "note", Usage: "what it is at: `TEXT`"},
			&cli.StringFlag{Name: "cannot-end", Usage: "`WHICH` process is to end and may not be " +
				"signalled, and why; while that is said, the lease may go on beyond the max runtime"},
		),
		Examples: []cli.Example{
			{"jobledger heartbeat 01JB2Q… --token 01JB2R…", "for as long again as the claim's lease"},
			{"jobledger heartbeat --progress 40% --note 'page 4 of 10'",
				"within a command of 'jobledger work': no id, no token"},
		},
		Exits: jobverb.OwnerExits,
		Run: func(c *cli.Context) error {
			progress, err := parseProgress(c)
			if err != nil {
				return err
			}
			return jobverb.AsOwner(p.Program, c, func(j projection.Job, token, owner string) commands.Command {
				return commands.Heartbeat{Token: token, Owner: owner, Lease: leaseFor(c, j), Progress: progress,
					Note: asText(c.String("note")), CannotEnd: c.String("cannot-end")}
			})
		},
	})
}

// leaseFor is --lease, else as long as the last time: a default of its own could be shorter than what the
// owner counts on.
func leaseFor(c *cli.Context, j projection.Job) time.Duration {
	if lease, given := cli.DurationValue(c, "lease"); given {
		return lease
	}
	lease := j.LeaseUntil.Sub(j.HeartbeatAt)
	if lease < commands.MinLease { // the clock was set back in between: the lease is unknown
		lease = commands.DefaultLease
	}
	return min(lease, commands.MaxLease)
}

// parseProgress reads --progress; nil when it was not given.
func parseProgress(c *cli.Context) (*float64, error) {
	if !c.IsSet("progress") {
		return nil, nil
	}
	n, ok := readProgress(c.String("progress"))
	if !ok {
		return nil, cli.Usagef("--progress: %q is neither a number from 0 to 1 nor a percentage up to 100%%",
			c.String("progress"))
	}
	return &n, nil
}

func readProgress(text string) (n float64, ok bool) {
	number, percent := strings.CutSuffix(text, "%")
	if strings.Trim(number, "0123456789.eE+-") != "" { // package strconv also reads Inf, 0x1p-1 and 1_0
		return 0, false
	}
	n, err := strconv.ParseFloat(number, 64)
	if percent {
		n /= 100
	}
	return math.Abs(n), err == nil && n >= 0 && n <= 1 // of -0 it makes 0
}
