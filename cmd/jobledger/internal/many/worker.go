package many

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/jobcmd"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/commands/worker/child"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// manyRun is a run of many jobs: a worker that takes these only.
type manyRun struct {
	p       Program
	c       *cli.Context
	service *commands.Service
	batch   string
	label   string
	slots   int
	halt    Halt
	found   bool // the jobs are those of a batch that is resumed, and run as they stand in the ledger

	jobs   map[event.JobID]*oneOf
	order  []event.JobID    // by place
	past   []projection.Job // those that had ended before
	queues []string
	twice  int // lines that are there twice

	printer Printer
	screen  screen
	worker  *worker.Worker
	giveUp  context.CancelFunc
	began   time.Time

	mu        sync.Mutex
	open      int // jobs that have not ended
	running   int
	succeeded int
	failed    int  // those that were cancelled, too
	good, bad int  // ends of this run, for halt
	signalled bool // or the reader of the outputs has gone
}

// run runs the jobs until all have ended, or it is stopped, and returns the exit code as an error.
func (r *manyRun) run() error {
	p, c := r.p, r.c
	command := jobcmd.OfRun(p.Program, r.service)
	command.KillAfter, _ = cli.DurationValue(c, "kill-after")
	command.Begin = r.begin
	r.worker = &worker.Worker{Service: r.service, Command: command, Process: cli.ThisWorker("", ""),
		Queues: r.queues, Capabilities: []string{r.label}, Slots: r.slots,
		Log: slog.New(jobcmd.LogHandler(p.Program, slog.LevelError))}
	r.worker.Lease, _ = cli.DurationValue(c, "lease")
	r.worker.Hooks.Started = func(projection.Job, time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running++
		r.say(0)
	}
	r.worker.Hooks.Ended = func(j projection.Job, _ worker.Ending, _ time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running--
		r.note(j)
	}

	stderr := p.Stderr
	r.began = time.Now()
	r.screen.bar = p.StartProgress("run", int64(len(r.order)))
	defer r.screen.bar.Done()
	r.printer.Keep = c.Bool("keep-order")
	r.printer.Out, r.printer.Err = r.screen.to(os.Stdout), r.screen.to(stderr)
	r.screen.failed = r.cannotPrint
	p.Stderr = r.screen.to(stderr)
	r.printer.Start()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	r.giveUp = cancel
	undo := jobcmd.StopOnSignals(p.Program, r.worker, cancel, 0, func(string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.signalled = true
	})
	for _, j := range r.past {
		if r.printer.Keep {
			r.printPast(j, command.Logs)
		}
		r.mu.Lock()
		r.note(j)
		r.mu.Unlock()
	}
	var watching sync.WaitGroup
	var err error
	if r.open > 0 {
		watching.Go(func() { r.watch(ctx) })
		_, err = r.worker.Run(ctx)
	}
	cancel()
	watching.Wait()
	undo()
	printErr := r.printer.Close()
	r.screen.bar.Done()
	p.Stderr = stderr
	if err != nil && !errors.Is(err, worker.ErrStopped) {
		return jobcmd.Error(err)
	}
	if printErr != nil && !errors.Is(printErr, syscall.EPIPE) {
		return fmt.Errorf("print what the commands wrote: %w", printErr)
	}
	return r.sayAll()
}

// begin checks that a claimed job is one of this run, as it enqueued it, and returns what prints its output.
func (r *manyRun) begin(j projection.Job) (stdout, stderr io.Writer, ended func(commands.Command),
	err error) {
	one := r.jobs[j.ID]
	if one == nil || !r.found && one.payload != sha256.Sum256(j.Payload) {
		return nil, nil, nil, errors.New("the ledger gave back another command than the one that was put " +
			"into it: nothing was run")
	}
	ended = func(end commands.Command) { r.ending(j, end) }
	if !r.c.Bool("line-buffer") {
		stdout, stderr = r.printer.Begin(one.place)
		return stdout, stderr, ended, nil
	}
	prefix := "[" + words.Truncate(one.title, 40) + "] "
	stdout, stderr = child.NewPrefixWriter(r.printer.Out, prefix), child.NewPrefixWriter(r.printer.Err, prefix)
	return stdout, stderr, ended, nil
}

// ending takes in how an attempt ends, before that is recorded and another job is claimed with it.
func (r *manyRun) ending(j projection.Job, end commands.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch end := end.(type) {
	case commands.Succeed:
		r.good++
	case commands.Fail:
		if !end.NoRetry && j.Failures+1 < j.MaxAttempts {
			return
		}
		r.bad++
	}
	if !r.halt.Reached(r.good, r.bad) {
		return
	}
	r.worker.Stop()
	if r.halt.Now {
		r.giveUp()
	}
}

// note takes in where a job stands. r.mu is held.
func (r *manyRun) note(j projection.Job) {
	one := r.jobs[j.ID]
	if one == nil || one.noted || !j.State.Final() {
		r.say(0)
		return
	}
	one.noted = true
	if j.State == event.SucceededState {
		r.succeeded++
	} else {
		r.failed++
	}
	r.say(1)
	if !one.past {
		r.printer.End(one.place)
		r.open--
	}
	if r.open == 0 {
		r.worker.Stop()
	}
}

// cannotPrint stops the run, whose outputs have no reader.
func (r *manyRun) cannotPrint() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signalled = true
	r.worker.Stop()
	r.giveUp()
}

// say shows how far the run is, after so many more ends. r.mu is held.
func (r *manyRun) say(ended int) {
	text := fmt.Sprintf("%d running", r.running)
	if r.failed > 0 {
		text = fmt.Sprintf("%d failed, %s", r.failed, text)
	}
	r.screen.show(text, ended)
}

// How often the run looks for ends of its jobs that it has not brought about itself, as of one that was
// cancelled, while no command runs.
const lookEvery = time.Second

// watch notes the ends of jobs that another process has brought about, until ctx ends.
func (r *manyRun) watch(ctx context.Context) {
	for {
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return
		}
		r.mu.Lock()
		idle := r.running == 0
		r.mu.Unlock()
		if !idle {
			continue
		}
		_ = r.look(ctx) // it is tried again, and the worker says what is wrong with the ledger
	}
}

// look reads where the jobs stand that have not ended as far as is known, and takes those that wait for
// another run.
func (r *manyRun) look(ctx context.Context) error {
	r.mu.Lock()
	var open []event.JobID
	for _, id := range r.order {
		if !r.jobs[id].noted {
			open = append(open, id)
		}
	}
	r.mu.Unlock()
	var found []projection.Job
	err := r.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		found = nil
		for _, id := range open {
			j, ok, err := projection.Get(ctx, tx, id)
			if err != nil {
				return err
			}
			if ok {
				found = append(found, j)
			}
		}
		return nil
	})
	if err == nil { // what a run that was killed had claimed waits for that run again
		err = r.take(slices.DeleteFunc(slices.Clone(found), func(j projection.Job) bool {
			return event.LabelRun+event.RunOf(j.Requires) == r.label
		}))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range found {
		r.note(j)
	}
	return err
}

// sayAll says how the run ended, and returns its exit code.
func (r *manyRun) sayAll() error {
	all, left := len(r.order), len(r.order)-r.succeeded-r.failed
	if r.p.JSON {
		slog.New(jobcmd.LogHandler(r.p.Program, slog.LevelInfo)).Info("ended", "batch", r.batch, "jobs", all,
			"succeeded", r.succeeded, "failed", r.failed, "left", left, "took_ms", time.Since(r.began).Milliseconds())
	} else if r.p.StderrTerminal || r.succeeded < all {
		text := fmt.Sprintf("%d of %d succeeded in %s", r.succeeded, all, words.Briefly(time.Since(r.began)))
		if r.failed > 0 {
			text += fmt.Sprintf(", %d failed", r.failed)
		}
		if left > 0 {
			text += fmt.Sprintf(", %d left", left)
		}
		text += fmt.Sprintf(" (batch %s)", r.batch)
		var by []string
		command := func(format string) {
			by = append(by, fmt.Sprintf(format, words.QuoteShell(r.batch))+r.p.DBFlag())
		}
		if r.failed > 0 {
			command("list --tag batch=%s --state failed")
		}
		if left > 0 {
			command("go on: run --resume %s")
		} else if r.failed > 0 {
			command("run them again: retry --tag batch=%s --state failed")
			command("and then run --resume %s")
		}
		if len(by) > 0 {
			text += ": " + strings.Join(by, "; ")
		}
		r.p.Message("%s", text)
	}
	switch {
	case r.signalled && left > 0:
		return cli.Quietly(cli.ExitBusy)
	case r.failed > 0:
		return cli.Quietly(cli.ExitNotSucceeded)
	}
	return nil
}

// screen is a terminal with a bar below what is printed.
type screen struct {
	failed func() // called when something cannot be printed

	mu  sync.Mutex // held while something is printed
	bar *cli.Progress

	next  sync.Mutex
	text  string // of the bar, when it is shown next
	ended int
}

// show shows the bar, or leaves that to the next time: it does not wait for what is being printed.
func (s *screen) show(text string, ended int) {
	s.next.Lock()
	s.text, s.ended = text, s.ended+ended
	s.next.Unlock()
	if s.mu.TryLock() {
		s.draw()
		s.mu.Unlock()
	}
}

// draw shows the bar. s.mu is held.
func (s *screen) draw() {
	s.next.Lock()
	defer s.next.Unlock()
	s.bar.Say(s.text)
	s.bar.Add(s.ended)
	s.ended = 0
}

// to returns a writer to w that takes the bar off the screen meanwhile.
func (s *screen) to(w io.Writer) io.Writer { return above{s, w} }

type above struct {
	*screen
	w io.Writer
}

func (a above) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bar.Clear()
	n, err := a.w.Write(b)
	if err != nil {
		a.failed()
	}
	a.draw()
	return n, err
}
