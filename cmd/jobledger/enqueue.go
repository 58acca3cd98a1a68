package main

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/joblines"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

func enqueueVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "enqueue", Group: cli.GroupProduce, Usage: "put a job, or many, into a queue",
		About: "Prints the id of the job once it is durable. The payload is up to 1 MiB of any bytes: PAYLOAD, " +
			"or for - what comes on standard input; without either it is empty. The ledger is made if there is " +
			"none.\n" +
			"A --key is your own name for a job, unique in its queue for ever: sent again with the same payload, " +
			"it gives the same id and no second job; with another payload it is a conflict. So a key makes it safe " +
			"to repeat a command.\n" +
			"--run-at takes a time with its zone (2026-05-04T15:04:05+02:00), 15:04 for the next one, or +10m; a " +
			"time that is past means now.\n" +
			"--jsonl reads a job from each line: a JSON object with the keys " + joblines.Keys +
			". A string as payload is taken for what it says, other JSON for its exact text. The flags are " +
			"defaults; a line overrides them, and its tags join theirs. Nothing is written unless every line is " +
			"right; then jobs are written 10,000 at a time, and the ids come in the order of the lines.",
		Args: "[PAYLOAD | -]", MaxArgs: 1,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`: up to 64 of a-z 0-9 . _ -"},
			&cli.StringFlag{Name: "key", Usage: "your own `NAME` for the job, unique in its queue for ever"},
			cli.ListFlag("tag", "note `NAME=VALUE` with the job; may be repeated"),
			cli.WholeFlag("priority", "`N` from -100 to 100; higher is claimed first", 0, -commands.MaxPriority,
				commands.MaxPriority, ""),
			&cli.StringFlag{Name: "run-at", Usage: "not before `TIME`"},
			cli.DurationFlag("delay", "not before `D` from now", "", 0, commands.MaxRunTime, true),
			cli.WholeFlag("max-attempts", "give up after `N` failures", projection.DefaultMaxAttempts, 1,
				commands.MaxMaxAttempts, ""),
			cli.DurationFlag("max-runtime", "an attempt may take `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			&cli.StringFlag{Name: "version", Usage: "only for workers of version `V`"},
			cli.ListFlag("requires", "only for workers with the capability `LABEL`; may be repeated"),
			&cli.StringFlag{Name: "jsonl", Usage: "read the jobs from `FILE`, or - for standard input"},
		},
		Examples: []cli.Example{
			{`jobledger enqueue -q mail '{"to": "ada@example.com"}'`, "prints the id of the new job"},
			{"jobledger enqueue -q mail --key invoice-17 --delay 10m - <invoice.json",
				"the file's exact bytes, once only, in ten minutes"},
			{"jobledger enqueue -q night --run-at 02:30 --priority 5 --tag customer=17 report",
				"at the next half past two"},
			{"jobledger enqueue -q mail --jsonl jobs.jsonl >ids",
				`a job a line, such as {"payload": {"to": "ada"}, "key": "a-1", "delay": "90s"}`},
		},
		Exits: []int{cli.ExitConflict, cli.ExitBusy},
		Run:   p.enqueue,
	}
}

func (p *program) enqueue(c *cli.Context) error {
	e, err := p.enqueueFlags(c)
	if err != nil {
		return err
	}
	if c.IsSet("jsonl") {
		return p.enqueueLines(c, e)
	}
	if e.Queue == "" {
		return cli.WithHint(cli.Usagef("missing flag --queue (-q)"), "%s", cli.SeeHelp("enqueue"))
	}
	if e.Payload, err = p.ReadBody("payload", c.Args().First()); err != nil {
		return err
	}
	if err := e.Check(); err != nil { // before a ledger is made
		return err
	}
	p.ReparseTimes = func() { e.RunAt, _, _ = p.runAt(c) }
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	e.ID = ulid.Make().String() // so that after an unknown outcome the same can be asked again
	answers, err := service.Enqueue(c.Context, p.Actor, e)
	if errors.Is(err, ledger.ErrUnknown) {
		answers, err = service.Enqueue(c.Context, p.Actor, e)
	}
	if errors.Is(err, ledger.ErrUnknown) && e.Key == "" {
		return cli.WithHint(err, "look for job %s before you send it again: without --key that could make a "+
			"second one", e.ID)
	}
	if err != nil {
		return err
	}
	answer := answers[0]
	if answer.Existing && string(answer.ID) != e.ID {
		p.Message("key %q is job %s already, with this payload; it is %s", e.Key, answer.ID, answer.State)
	}
	_ = p.printEnqueued(answer.Job, answer.Existing && string(answer.ID) != e.ID) // Flush returns the error
	if err := p.Flush(); err != nil && !errors.Is(err, syscall.EPIPE) {
		// A caller that reads "try again" would enqueue it twice.
		return cli.Exitf(cli.ExitUnexpected, "print the id: %w; job %s is enqueued", err, answer.ID)
	}
	return nil
}

// printEnqueued prints the id, or the job without its payload.
func (p *program) printEnqueued(j projection.Job, existing bool) error {
	if p.JSON {
		return p.PrintJSON(struct {
			render.JobJSON
			Existing bool `json:"existing"` // the key was that of an earlier job, which is this one
		}{render.ToJSON(j), existing})
	}
	return p.PrintLine(string(j.ID))
}

// enqueueFlags is the job as the flags have it, without a payload.
func (p *program) enqueueFlags(c *cli.Context) (e commands.Enqueue, err error) {
	e = commands.Enqueue{Queue: c.String("queue"), Key: c.String("key"), Priority: c.Int("priority"),
		MaxAttempts: c.Int("max-attempts"),
		Version:     c.String("version"), Requires: c.StringSlice("requires")}
	e.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	if e.Tags, err = readTags(c.StringSlice("tag")); err != nil {
		return e, err
	}
	e.RunAt, _, err = p.runAt(c)
	return e, err
}

// readTags reads what --tag says.
func readTags(pairs []string) (map[string]string, error) {
	tags := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		_, twice := tags[name]
		switch {
		case !ok:
			return nil, cli.Usagef("--tag: %q is not NAME=VALUE", pair)
		case twice:
			return nil, cli.Usagef("--tag: %q is given twice", name)
		}
		tags[name] = value
	}
	return tags, nil
}

// runAt reads --run-at or --delay; given is false when neither is there. What it refuses, it refuses whatever
// now is: so a recount cannot fail.
func (p *program) runAt(c *cli.Context) (t time.Time, given bool, err error) {
	delay, delayed := cli.DurationValue(c, "delay")
	switch {
	case delayed && c.IsSet("run-at"):
		return t, false, cli.Usagef("--run-at and --delay exclude each other")
	case delayed:
		return p.Now().Add(delay), true, nil
	case c.IsSet("run-at"):
		t, err = cli.ReadNext("--run-at", c.String("run-at"), p.Now())
		return t, err == nil, err
	}
	return t, false, nil
}
