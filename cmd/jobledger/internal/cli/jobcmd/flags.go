package jobcmd

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker"
)

// Flags say how a worker's command is run, and what its end means.
func Flags() []cli.Flag {
	return []cli.Flag{
		cli.DurationFlag("kill-after", "KILL comes `D` after TERM", "10s", time.Millisecond, time.Hour, false),
		cli.ListFlag("exit-code", "give an exit code another meaning, `CODE=OUTCOME`; may be repeated"),
		cli.ListFlag("env", "pass only `NAME` of this environment to the command, and PATH, HOME and the like; "+
			"may be repeated"),
		&cli.BoolFlag{Name: "no-capture", Usage: "keep nothing of the output but its size",
			DisableDefaultText: true},
		&cli.StringFlag{Name: "capture", Value: captureAll, Hidden: true}, // the former --no-capture: all or none
		&cli.StringFlag{Name: "result", Usage: "`WHAT` is the job's result: stdout or none", Value: resultStdout},
		cli.WholeFlag("log-limit", "keep `N` bytes of each stream of an attempt", 1<<20, 1<<10, 1<<30, ""),
	}
}

// FromLine returns the command after "--", configured by [Flags], for jobs of the ledger of p.
func FromLine(p *cli.Program, c *cli.Context) (*worker.Command, error) {
	if err := checkOutputFlags(c); err != nil {
		return nil, err
	}
	exits, err := exitMap(c.StringSlice("exit-code"))
	if err != nil {
		return nil, err
	}
	command := &worker.Command{Carried: len(p.Rest) == 0, DB: cli.AbsoluteDSN(p.DB),
		Supervisor: worker.SelfSupervisor(), Keeper: keeper(),
		Map: exits, Stdout: os.Stdout, Stderr: os.Stderr, ResultLimit: resultLimit,
		NoResult: c.String("result") == resultNone, Private: noCapture(c), LogLimit: int64(c.Int("log-limit"))}
	if !command.Carried {
		command.Path, command.Args = p.Rest[0], p.Rest[1:]
	} else if c.IsSet("env") {
		return nil, cli.Usagef("--env is for a worker's own command; what a job carries has its own environment")
	}
	command.KillAfter, _ = cli.DurationValue(c, "kill-after")
	command.EnvOnly, err = envNames(p, c.StringSlice("env"))
	return command, err
}

// keeper is the command line with which this program keeps a claim alive; see [worker.Command].
func keeper() []string {
	if self := worker.SelfSupervisor(); self != nil {
		return []string{self[0], "heartbeat"}
	}
	return nil
}

// envNames are the variables that --env lets through; nil without it, which lets all through.
func envNames(p *cli.Program, names []string) ([]string, error) {
	for _, name := range names {
		if err := worker.CheckEnvName(name); err != nil {
			return nil, cli.WithHint(cli.Usagef("--env: %w", err),
				"a name such as SMTP_URL; its value comes from this environment")
		}
		if _, set := os.LookupEnv(name); !set {
			p.Message("--env %s: it is not set here, so the command does not have it", name)
		}
	}
	return names, nil
}

// resultLimit is how much of a command's standard output becomes the job's result.
const resultLimit = 64 << 10

const (
	captureAll, captureNone  = "all", "none"
	resultStdout, resultNone = "stdout", "none"
)

func checkOutputFlags(c *cli.Context) error {
	capture, result := c.String("capture"), c.String("result")
	switch {
	case capture != captureAll && capture != captureNone:
		return cli.Usagef("--capture: %q is neither %s nor %s", capture, captureAll, captureNone)
	case result != resultStdout && result != resultNone:
		return cli.Usagef("--result: %q is neither %s nor %s", result, resultStdout, resultNone)
	case noCapture(c) && c.IsSet("result") && result == resultStdout:
		return cli.Usagef("--no-capture and --result stdout cannot be combined")
	}
	return nil
}

func noCapture(c *cli.Context) bool {
	return c.Bool("no-capture") || c.String("capture") == captureNone
}

// exitMap reads --exit-code.
func exitMap(pairs []string) (map[int]worker.Outcome, error) {
	exits := make(map[int]worker.Outcome)
	for _, pair := range pairs {
		text, outcome, _ := strings.Cut(pair, "=")
		code, err := strconv.ParseUint(text, 10, 8)
		if err != nil || !slices.Contains(worker.Outcomes(), worker.Outcome(outcome)) {
			outcomes := words.Of(worker.Outcomes(), func(o worker.Outcome) string { return string(o) })
			return nil, cli.WithHint(cli.Usagef("--exit-code: %q is not CODE=OUTCOME", pair),
				"a code is a number from 0 to 255, an outcome one of %s", strings.Join(outcomes, ", "))
		}
		if _, twice := exits[int(code)]; twice {
			return nil, cli.Usagef("--exit-code: %d is given twice", code)
		}
		exits[int(code)] = worker.Outcome(outcome)
	}
	return exits, nil
}
