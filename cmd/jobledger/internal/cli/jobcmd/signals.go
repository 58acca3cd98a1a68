package jobcmd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands/worker"
	"jobledger/ledger/failpoint"
)

// StopOnSignals makes the first signal stop w gently and the second at once, or the time within which to
// finish (0: no end). It returns what undoes that. The signals stay caught until the process ends: who sends
// two does not know when the worker has finished, and a late one must not make a death of an orderly end.
func StopOnSignals(p *cli.Program, w *worker.Worker, cancel func(), within time.Duration,
	notify func(string)) func() {
	signals := endingSignals(4)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var first os.Signal
		select {
		case first = <-signals:
		case <-over:
			return
		}
		notify("STOPPING=1")
		w.Stop() // so that it holds when it is said
		p.Message("%v: no more jobs are claimed; those under way may finish (a second signal gives them back)",
			first)
		var late <-chan time.Time
		if within > 0 {
			late = time.After(within)
		}
		why := ""
		select {
		case second := <-signals:
			why = second.String()
		case <-late:
			why = fmt.Sprintf("not done within %s", within)
		case <-over:
			return
		}
		p.Message("%s: ending the jobs under way and giving them back", why)
		cancel()
	}()
	return func() {
		close(over)
		<-ended // or what it says may be lost
		failpoint.Hit("over")
	}
}

// Stoppable returns a context that ends with the first signal to end. end undoes that, and says which signal
// came, if any.
func Stoppable(ctx context.Context) (stopped context.Context, end func() os.Signal) {
	stopped, cancel := context.WithCancel(ctx)
	signals := endingSignals(1)
	came := make(chan os.Signal, 1)
	go func() {
		defer close(came)
		if s, ok := <-signals; ok {
			came <- s
			cancel()
		}
	}()
	return stopped, func() os.Signal {
		signal.Stop(signals)
		close(signals)
		s := <-came
		cancel()
		return s
	}
}

// endingSignals catches the signals that ask a process to end, but not those that are ignored, as under
// nohup.
func endingSignals(room int) chan os.Signal {
	signals := make(chan os.Signal, room)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// DieOf ends this process by the signal that it has caught, so that a calling shell stops as well.
func DieOf(p *cli.Program, s os.Signal) error {
	_ = p.Flush()
	signal.Reset(s)
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Signal(s) == nil {
		time.Sleep(time.Second)
	}
	return cli.Exitf(cli.ExitNotSucceeded, "ended by %v", s)
}
