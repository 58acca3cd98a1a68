package produce

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobverb"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

func (p *Verbs) Enqueue() cli.Verb {
	return cli.Verb{
		Name: "enqueue", Group: cli.GroupProduce, Usage: "put a job, or many, into a queue",
		About: "Prints the id of the job once it is durable. The payload is up to 1 MiB of any bytes: PAYLOAD, " +
			"or for - what comes on standard input; without either it is empty. The ledger is made if there is " +
			"none.\n" +
			"A --key is your own name for a job, unique in its queue for ever: sent again with the same payload, " +
			"it gives the same id and no second job; with another payload it is a conflict. So a key makes it safe " +
			"to repeat a command.\n" +
			"With --unique-while the key is the job's own only while it waits, and may come again afterwards: " +
			"'queued' until the job is claimed, 'unfinished' until it has ended. Until then the answer is the id of " +
			"the job that has the key, whatever the payload; with --on-duplicate replace a job that still waits " +
			"gets the new payload, and one that runs is a conflict; with refresh one that runs is left as it is.\n" +
			"--max-attempts, --max-runtime and --backoff that are not given are those that 'queue set' has for its " +
			"queue.\n" +
			"With --group the jobs of a queue are served fairly: of the groups with jobs of one priority, the one " +
			"that has waited for longest since its last claim is served next, however many jobs the others have.\n" +
			"--run-at takes a time with its zone (2026-05-04T15:04:05+02:00), 15:04 for the next one, or +10m; a " +
			"time that is past means now.\n" +
			"With --after the job is blocked until the other has succeeded, or as :failed or :finished say; " +
			"where that cannot be any more, it is cancelled, and a retry of the other one heals that. " +
			"--before makes a job that is blocked wait for this one too. With --hold it waits for " +
			"'jobledger unblock'. See 'jobledger help dependencies'.\n" +
			"--lines takes each line for a payload, without its newline and with all else that it has; empty lines " +
			"are passed over. Nothing is written unless every line is right.\n" +
			"--jsonl reads a job from each line: a JSON object with the keys " + joblines.Keys +
			". A ref is a name for the job within the file: after and before of " +
			"later lines may use it in place of an id. A string as payload is taken for what it says, other " +
			"JSON for its exact text. The flags are defaults; a line overrides them, and its tags join theirs. " +
			"Nothing is written unless every line is right; then jobs are written 10,000 at a time, " +
			"and the ids come in the order of the lines. Where on_duplicate is replace and the job of a line has " +
			"begun, the other lines are done, each such line is named, and the exit code is 6.\n" +
			"Where TRACEPARENT is set, as by OpenTelemetry, the job gets it as the tag traceparent, and its command " +
			"as TRACEPARENT." + cli.AboutRemote,
		Args: "[PAYLOAD | -]", MaxArgs: 1,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "queue", Aliases: []string{"q"}, Usage: "the `QUEUE`: up to 64 of a-z 0-9 . _ -"},
			&cli.StringFlag{Name: "key", Usage: "your own `NAME` for the job, unique in its queue for ever"},
			&cli.StringFlag{Name: "unique-while", Usage: "--key is the job's own while it is `queued` " +
				"or unfinished, not for ever"},
			&cli.StringFlag{Name: "on-duplicate", Usage: "with --unique-while, if a job has the key: " +
				"`ignore` it, replace its payload, or refresh: replace it unless the job has begun"},
			&cli.StringFlag{Name: "group", Usage: "the `GROUP` it belongs to, such as a customer; groups are " +
				"served in rotation"},
			cli.ListFlag("tag", "note `NAME=VALUE` with the job; may be repeated"),
			cli.WholeFlag("priority", "`N` from -100 to 100; higher is claimed first", 0, -commands.MaxPriority,
				commands.MaxPriority, ""),
			&cli.StringFlag{Name: "run-at", Usage: "not before `TIME`, such as 02:00 or 'fri 2pm'"},
			cli.DurationFlag("delay", "not before `D` from now", "", 0, commands.MaxRunTime, true),
			cli.WholeFlag("max-attempts", "give up after `N` failures", projection.DefaultMaxAttempts, 1,
				commands.MaxMaxAttempts, ""),
			cli.DurationFlag("max-runtime", "an attempt may take `D` at most", "", time.Millisecond,
				commands.MaxRunTime, false),
			&cli.StringFlag{Name: "backoff", Usage: "how long to wait after failures: `'min 1s, max 1h, factor 2'`"},
			&cli.StringFlag{Name: "version", Usage: "only for workers of version `V`"},
			cli.ListFlag("requires", "only for workers with the capability `LABEL`; may be repeated"),
			cli.ListFlag("after", "wait for `JOB`, JOB:failed or JOB:finished; may be repeated"),
			cli.ListFlag("before", "the blocked `JOB` waits for this one too; may be repeated"),
			&cli.BoolFlag{Name: "hold", Usage: "wait for 'jobledger unblock'", DisableDefaultText: true},
			&cli.StringFlag{Name: "lines", Usage: "a job for each line of `FILE`, or - for standard input: the line " +
				"is its payload"},
			&cli.BoolFlag{Name: "null", Aliases: []string{"0"}, Usage: "with --lines: each ends with a NUL, as " +
				"find -print0 writes them", DisableDefaultText: true},
			&cli.StringFlag{Name: "jsonl", Usage: "read the jobs from `FILE`, or - for standard input"},
		}, cli.RemoteFlags()...),
		Examples: []cli.Example{
			{`jobledger enqueue -q mail '{"to": "ada@example.com"}'`, "prints the id of the new job"},
			{"jobledger enqueue -q mail --key invoice-17 --delay 10m - <invoice.json",
				"the file's exact bytes, once only, in ten minutes"},
			{"jobledger enqueue -q index --key page-17 --unique-while queued page-17",
				"no second job while this one waits for a worker"},
			{"jobledger enqueue -q night --run-at 02:30 --priority 5 --tag customer=17 report",
				"at the next half past two"},
			{"jobledger enqueue -q mail --after 01KDY9FY88 report", "once that job has succeeded"},
			{"ls *.jpg | jobledger enqueue -q webp --tag batch=7 --lines -", "a job for each file"},
			{"jobledger enqueue -q mail --jsonl jobs.jsonl >ids",
				`a job a line, such as {"payload": {"to": "ada"}, "key": "a-1", "delay": "90s"}`},
		},
		Complete: map[string][]string{"unique-while": {event.WhileQueued, event.WhileUnfinished},
			"on-duplicate": {commands.IgnoreDuplicate, commands.ReplaceDuplicate,
				commands.RefreshDuplicate}},
		Exits: []int{cli.ExitConflict, cli.ExitNoJob, cli.ExitBusy},
		Run:   p.enqueue,
	}
}

func (p *Verbs) enqueue(c *cli.Context) error {
	e, err := p.enqueueFlags(c)
	if err != nil {
		return err
	}
	for _, flag := range []string{"lines", "jsonl"} {
		if c.IsSet(flag) {
			return p.enqueueLines(c, flag, e)
		}
	}
	if c.Bool("null") {
		return cli.Usagef("--null (-0) is for --lines")
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
	p.ReparseTimes = func() { e.RunAt, _, _ = jobverb.RunAt(p.Program, c) }
	to, service, done, err := p.ledgerOf(c)
	if err != nil {
		return err
	}
	defer done()
	if err := readDependencies(c, service, &e); err != nil {
		return err
	}
	e.ID = ulid.Make().String() // so that after an unknown outcome the same can be asked again
	answers, err := to.Enqueue(c.Context, p.Actor, e)
	if errors.Is(err, ledger.ErrUnknown) {
		answers, err = to.Enqueue(c.Context, p.Actor, e)
	}
	if errors.Is(err, ledger.ErrUnknown) && (e.Key == "" || e.UniqueWhile != "") {
		return cli.WithHint(err, "look for job %s before you send it again: without --key that could make a "+
			"second one", e.ID)
	}
	if err != nil {
		return err
	}
	if !c.Args().Present() && p.InputWaits() { // asked late, when its writer had some time
		p.Message("the payload is empty: what comes on standard input is read for - only")
	}
	answer := answers[0]
	answer.Existing = answer.Existing && string(answer.ID) != e.ID
	switch {
	case answer.Replaced:
		p.Message("key %q is job %s already; it is %s, and its payload is replaced", e.Key, answer.ID, answer.State)
	case answer.Left:
		p.Message("key %q is job %s already; it is %s, and keeps its payload", e.Key, answer.ID, answer.State)
	case answer.Existing && e.UniqueWhile != "":
		p.Message("key %q is job %s already; it is %s", e.Key, answer.ID, answer.State)
	case answer.Existing:
		p.Message("key %q is job %s already, with this payload; it is %s", e.Key, answer.ID, answer.State)
	}
	_ = p.printEnqueued(answer) // Flush returns the error
	if err := p.Flush(); err != nil && !errors.Is(err, syscall.EPIPE) {
		// A caller that reads "try again" would enqueue it twice.
		return cli.Exitf(cli.ExitUnexpected, "print the id: %w; job %s is enqueued", err, answer.ID)
	}
	if p.StdoutTerminal && p.StderrTerminal && !p.JSON && answer.N > 0 {
		p.Message("job %d", answer.N)
	}
	return nil
}

// printEnqueued prints the id, or the job without its payload.
func (p *Verbs) printEnqueued(a commands.Enqueued) error {
	if p.JSON {
		return p.PrintJSON(struct {
			words.JobJSON
			Existing bool `json:"existing"`           // the key was that of an earlier job, which is this one
			Replaced bool `json:"replaced,omitempty"` // which got this payload
			Left     bool `json:"left,omitempty"`     // which has begun and keeps its own payload
		}{words.ToJSON(a.Job), a.Existing, a.Replaced, a.Left})
	}
	return p.PrintLine(string(a.ID))
}

// enqueueFlags is the job as the flags have it, without a payload.
func (p *Verbs) enqueueFlags(c *cli.Context) (e commands.Enqueue, err error) {
	e = commands.Enqueue{Queue: c.String("queue"), Key: c.String("key"), Group: c.String("group"),
		UniqueWhile: c.String("unique-while"), OnDuplicate: c.String("on-duplicate"),
		Priority: c.Int("priority"),
		Version:  c.String("version"), Requires: c.StringSlice("requires"), Hold: c.Bool("hold")}
	e.MaxRuntime, _ = cli.DurationValue(c, "max-runtime")
	if c.IsSet("max-attempts") { // else that of the queue
		e.MaxAttempts = c.Int("max-attempts")
	}
	if e.Backoff, err = jobverb.Backoff(c); err != nil {
		return e, err
	}
	if e.Tags, err = joblines.Tags("--tag", c.StringSlice("tag")); err != nil {
		return e, err
	}
	if trace := os.Getenv("TRACEPARENT"); worker.IsTraceparent(trace) && e.Tags[worker.TraceTag] == "" {
		e.Tags[worker.TraceTag] = trace
	}
	if err := commands.ReservedLabel("requires", e.Requires); err != nil {
		return e, err
	}
	e.RunAt, _, err = jobverb.RunAt(p.Program, c)
	return e, err
}
