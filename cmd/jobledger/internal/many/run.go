package many

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/argv"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Program is the program with what it knows of a run of one command.
type Program struct {
	*cli.Program
	// Carried returns the job of the flags and the command of a line
	Carried   func(c *cli.Context) (commands.Enqueue, argv.Form, error)
	MakeQueue func(c *cli.Context, service *commands.Service, queue string) error
}

// About is what the help of run says of many commands.
const About = "--lines makes a job of each line that is not empty, and ::: one of each word after it; " +
	"after several ::: there is a job for each combination. In CMD, {} is the line, {.} the line without its " +
	"extension, {/} the name without its folder, {//} the folder, {/.} the name without both, {#} the " +
	"number of the job, and with several ::: {1}, {2.} and so on are the values of one of them. Without " +
	"any of these, the line is the last argument. With --sh, too, a line is never text for the shell: " +
	"{} is a reference to an argument. Nothing is enqueued unless every line is right.\n" +
	"The output of each command is printed as a whole when it has ended; that of an attempt which is " +
	"tried again is in 'jobledger logs' only. The exit code is 0, or 9 if a job failed; the last line " +
	"counts them. All have the tag batch=NAME. With --batch, NAME and the command are the key of a job: " +
	"the same line again is the same job, and is not run again. --halt and the first INT start no more, " +
	"'now' and the second INT end what runs; after a signal the exit code is 75. What did not run waits " +
	"for 'jobledger run --resume NAME', which takes -j, -k and so on; with -k it prints the outputs of " +
	"all, also of those that ended before, as far as they are kept for 'jobledger logs'. After kill -9 " +
	"of run, what ran then fails when its lease ends, or runs again with --max-attempts 2. Of GNU " +
	"parallel, there are no :::+, --colsep, -N, --joblog and {%}, and --halt takes no percents.\n"

// Flags are the flags of many commands.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "lines", Usage: "a job for each line of `FILE`, or - for standard input"},
		&cli.BoolFlag{Name: "null", Aliases: []string{"0"}, Usage: "with --lines: each ends with a NUL, as " +
			"find -print0 writes them", DisableDefaultText: true},
		&cli.StringFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "of many: run `N` at a time, N% of the " +
			"processors, or +N more than these", DefaultText: "100%"},
		&cli.BoolFlag{Name: "keep-order", Aliases: []string{"k"}, Usage: "of many: print the outputs in the " +
			"order of the lines", DisableDefaultText: true},
		&cli.BoolFlag{Name: "line-buffer", Usage: "of many: print each line of output at once, after the " +
			"values that it belongs to", DisableDefaultText: true},
		&cli.StringFlag{Name: "halt", Usage: "of many: `WHEN,WHAT=N`, such as soon,fail=1, starts no more; " +
			"now,… ends those that run; WHAT is fail, success or done", DefaultText: "never"},
		&cli.StringFlag{Name: "batch", Usage: "of many: the `NAME` of them all; what has run under it is not run " +
			"again"},
		&cli.StringFlag{Name: "resume", Usage: "run what is left of the batch `NAME`"},
		&cli.BoolFlag{Name: "dry-run", Usage: "of many: print the commands, and run nothing",
			DisableDefaultText: true},
	}
}

// ofMany are the flags of a run of many commands.
var ofMany = []string{"jobs", "keep-order", "line-buffer", "halt", "batch", "dry-run", "null"}

// notOfMany are the flags that say something of one command, or of one in the background.
var notOfMany = []string{"background", "key", "after", "run-at", "delay", "hold", "start", "no-start"}

// Is reports whether a line is about many commands, and returns an error for flags that cannot be
// combined.
func (p Program) Is(c *cli.Context) (bool, error) {
	is := c.IsSet("lines") || c.IsSet("resume") || slices.Contains(p.Rest, Separator)
	refuse := ofMany
	if is {
		refuse = notOfMany
	}
	for _, name := range refuse {
		switch {
		case !c.IsSet(name):
		case is:
			return is, cli.Usagef("--%s is for one command, not for many", name)
		default:
			return is, cli.Usagef("--%s is for many commands: --lines, %s or --resume", name, Separator)
		}
	}
	switch {
	case c.IsSet("lines") && c.IsSet("resume"):
		return is, cli.Usagef("--lines and --resume cannot be combined")
	case c.IsSet("lines") && slices.Contains(p.Rest, Separator):
		return is, cli.Usagef("--lines and %s cannot be combined", Separator)
	case c.Bool("null") && !c.IsSet("lines"):
		return is, cli.Usagef("--null (-0) is for --lines")
	case c.IsSet("resume") && (c.IsSet("batch") || c.IsSet("dry-run")):
		return is, cli.Usagef("--resume names the batch, and runs its jobs as they are")
	case c.Bool("keep-order") && c.Bool("line-buffer"):
		return is, cli.Usagef("--keep-order (-k) and --line-buffer cannot be combined")
	case c.String("lines") == "-" && c.String("stdin") == "-":
		return is, cli.Usagef("--lines - and --stdin - cannot be combined: there is one standard input")
	}
	return is, nil
}

// Run runs the commands that a line describes, or what is left of a batch.
func (p Program) Run(c *cli.Context) error {
	r := &manyRun{p: p, c: c, label: event.LabelRun + ulid.Make().String(), jobs: make(map[event.JobID]*oneOf)}
	var err error
	if r.slots, err = ParseSlots(c.String("jobs")); err != nil {
		return cli.Usagef("--jobs (-j): %w", err)
	}
	if r.halt, err = ParseHalt(c.String("halt")); err != nil {
		return cli.Usagef("--halt: %w", err)
	}
	if r.batch = c.String("resume"); r.batch != "" {
		if r.service, err = p.Open(c.Context); err != nil {
			return err
		}
		defer r.service.Store.Close()
		if err := r.find(); err != nil {
			return err
		}
		return r.run()
	}
	jobs, err := p.readMany(c)
	switch {
	case err != nil:
		return err
	case c.Bool("dry-run"):
		return p.PrintLines(words.Of(jobs, func(j planned) string { return words.Escape(j.command) }))
	case len(jobs) == 0:
		p.Message("there is no line")
		return nil
	}
	r.batch = jobs[0].job.Tags[state.BatchTag]
	if err := p.UseOwnPlace(); err != nil {
		return err
	}
	if r.service, err = p.OpenOrCreate(c.Context); err != nil {
		return err
	}
	defer r.service.Store.Close()
	if err := p.MakeQueue(c, r.service, jobs[0].job.Queue); err != nil {
		return err
	}
	if err := r.enqueue(jobs); err != nil {
		return err
	}
	return r.run()
}

// planned is a job of many before it is enqueued.
type planned struct {
	job     commands.Enqueue
	values  string // for people
	command string // as a line for a shell
}

// readMany returns a job for each line or combination of values.
func (p Program) readMany(c *cli.Context) (jobs []planned, err error) {
	var lists [][]string
	if p.Rest, lists = Split(p.Rest); len(p.Rest) == 0 {
		return nil, cli.WithHint(cli.Usagef("missing CMD before %s", Separator), "%s", cli.SeeHelp("run"))
	}
	base, form, err := p.Carried(c)
	if err != nil {
		return nil, err
	}
	if base.Tags[state.BatchTag] != "" {
		return nil, cli.Usagef("--tag batch: --batch sets it")
	}
	template, err := New(p.Rest, c.Bool("sh"), max(len(lists), 1))
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	batch := c.String("batch")
	named := batch != ""
	if !named {
		batch = ulid.Make().String()
	}
	base.Tags[state.BatchTag] = batch
	add := func(values []string) error {
		e := base
		form.Argv = template.Fill(len(jobs)+1, values)
		if e.Payload, err = form.Encode(); err != nil {
			return err
		}
		if named {
			sum := sha256.Sum256([]byte(strings.Join(form.Argv, "\x00")))
			e.Key = batch + "/" + hex.EncodeToString(sum[:16])
		}
		if err := e.Check(); err != nil {
			return err
		}
		jobs = append(jobs, planned{e, strings.Join(values, " "),
			words.CommandLine(form.Argv)})
		return nil
	}
	if !c.IsSet("lines") {
		for values := range Combine(lists) {
			if err := add(values); err != nil {
				return nil, cli.Usagef("%s %.80q: %w", Separator, values, err)
			}
		}
		return jobs, nil
	}
	content, done, err := p.OpenInput("--lines", c.String("lines"))
	if err != nil {
		return nil, err
	}
	defer done()
	lines := joblines.Reader{Defaults: commands.Enqueue{Queue: base.Queue}, Plain: true, Null: c.Bool("null")}
	for chunk, err := range lines.Chunks(content) {
		if err != nil {
			return nil, err
		}
		for i, job := range chunk.Jobs {
			if err := add([]string{string(job.Payload)}); err != nil {
				return nil, cli.WithHint(cli.Usagef("line %d: %w", chunk.Lines[i], err), "nothing was enqueued")
			}
		}
	}
	return jobs, nil
}

// oneOf is one of many jobs.
type oneOf struct {
	place   int
	title   string            // before its lines of output
	payload [sha256.Size]byte // the digest
	past    bool              // it had ended before
	noted   bool              // it has ended, as far as this run has seen
}

// enqueueAtOnce is how many jobs are enqueued by one transaction.
const enqueueAtOnce = 1000

// enqueue enqueues the jobs for this run. Those that are there already and wait are this run's from now on.
func (r *manyRun) enqueue(jobs []planned) error {
	var waiting []projection.Job
	before := 0
	for chunk := range slices.Chunk(jobs, enqueueAtOnce) {
		asked := words.Of(chunk, func(j planned) commands.Enqueue {
			j.job.Requires = []string{r.label}
			return j.job
		})
		answers, err := r.service.Enqueue(r.c.Context, r.p.Actor, asked...)
		if err != nil {
			return err
		}
		for i, a := range answers {
			if _, twice := r.jobs[a.ID]; twice {
				r.twice++
				continue
			}
			one := r.add(a.Job)
			one.title, one.payload = words.Escape(chunk[i].values), sha256.Sum256(asked[i].Payload)
			if a.Existing {
				before++
				waiting = append(waiting, a.Job)
			}
		}
	}
	if r.twice > 0 {
		r.p.Message("%s %s there twice", words.Count(int64(r.twice), "line"),
			words.Plural(int64(r.twice), "is", "are"))
	}
	if before > 0 {
		r.p.Message("%d of %s %s in the batch %s already", before, words.Count(int64(len(r.order)), "job"),
			words.Plural(int64(before), "was", "were"), r.batch)
	}
	return r.take(waiting)
}

// find finds the jobs of the batch, of a ledger that no other user may write: what they carry is run as it
// is.
func (r *manyRun) find() error {
	if _, err := jobcmd.Rights(r.c.Context, r.service, ""); err != nil {
		code, why, _ := fault.Explain(err)
		return &fault.Error{Code: code, Err: fmt.Errorf("--resume: %s", why),
			Hint: "the same line as before, with --batch, goes on too: it runs only what it says itself"}
	}
	var found []projection.Job
	err := r.service.Store.Read(r.c.Context, func(tx *ledger.Tx) (err error) {
		found, err = projection.List(r.c.Context, tx, projection.Filter{
			Tags: map[string]string{state.BatchTag: r.batch}})
		return err
	})
	if err != nil {
		return err
	}
	r.found = true
	slices.Reverse(found) // the oldest first, as the lines were
	found = slices.DeleteFunc(found, func(j projection.Job) bool { return j.Form != event.FormArgv })
	if len(found) == 0 {
		return cli.Exitf(cli.ExitNoJob, "there is no batch %q", r.batch)
	}
	for _, j := range found {
		r.add(j).title = strconv.FormatInt(j.N, 10)
	}
	return r.take(found)
}

// add adds a job in the next place.
func (r *manyRun) add(j projection.Job) *oneOf {
	one := &oneOf{place: len(r.order), past: j.State.Final()}
	r.jobs[j.ID], r.order = one, append(r.order, j.ID)
	if !slices.Contains(r.queues, j.Queue) {
		r.queues = append(r.queues, j.Queue)
	}
	if one.past {
		r.past = append(r.past, j)
	} else {
		r.open++
	}
	return one
}

// take makes the jobs that wait this run's. One that another process has claimed meanwhile is left to it.
func (r *manyRun) take(jobs []projection.Job) error {
	var ops []commands.Op
	for _, j := range jobs {
		if j.State == event.Queued || j.State == event.Blocked {
			ops = append(ops, commands.Op{Job: j, Command: commands.Edit{Requires: []string{r.label},
				Reschedule: commands.Reschedule{Reason: "resumed by run"}}})
		}
	}
	for chunk := range slices.Chunk(ops, enqueueAtOnce) {
		if _, err := r.service.ApplyBatch(r.c.Context, r.p.Actor, chunk); err != nil {
			return err
		}
	}
	return nil
}

// printPast prints what the last attempt of a job wrote that had ended before this run.
func (r *manyRun) printPast(j projection.Job, folder string) {
	place := r.jobs[j.ID].place
	stdout, stderr := r.printer.Begin(place)
	for i, to := range []io.Writer{stdout, stderr} {
		log := logs.Output{Job: j, Attempt: j.Attempt, Stderr: i == 1, Folder: folder}
		if file, err := log.Open(); err == nil { // one that wrote nothing has no file
			_, _ = io.Copy(to, file) // the printer says what is missing
			_ = file.Close()
		}
	}
	r.printer.End(place)
}
