package worker

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"jobledger/commands"
	"jobledger/commands/worker/child"
	"jobledger/ledger"
	"jobledger/projection"
)

// Outcome is what an exit code of a command makes of its job.
type Outcome string

// The outcomes that Command.Map may give to an exit code.
const (
	OutcomeSucceed     Outcome = "succeed"       // the job has succeeded
	OutcomeFail        Outcome = "fail"          // a failure; tried again unless it was the last attempt
	OutcomeFailNoRetry Outcome = "fail-no-retry" // a failure, never tried again
	OutcomeRelease     Outcome = "release"       // no failure: run later, with backoff; the hundredth time a failure
)

// Outcomes are all that there are.
func Outcomes() []Outcome {
	return []Outcome{OutcomeSucceed, OutcomeFail, OutcomeFailNoRetry, OutcomeRelease}
}

// The exit codes of a child that mean more than failure, after sysexits.h, qmail and the shells.
const (
	exitTempFail  = 75
	exitSoftFail  = 111
	exitPermanent = 100
	exitCannotRun = 126
	exitNotFound  = 127
)

// outcomeOf is what an exit code means; "" for one that says that the command cannot be run.
func (c *Command) outcomeOf(code int) Outcome {
	if o, ok := c.Map[code]; ok {
		return o
	}
	switch code {
	case 0:
		return OutcomeSucceed
	case exitTempFail, exitSoftFail:
		return OutcomeRelease
	case exitPermanent:
		return OutcomeFailNoRetry
	case exitCannotRun, exitNotFound:
		return ""
	}
	return OutcomeFail
}

// ending says how an attempt ended: the exit map. nil: there is nothing to record.
func (c *Command) ending(job projection.Job, end child.End, output ledger.Output, cause error) commands.Command {
	first := c.isFirst(end)
	fail := commands.Fail{Token: job.Token, Detail: c.detail(end), ExitCode: end.ExitCode, Signal: end.Signal, Output: output}
	release := commands.Release{Token: job.Token, Reason: ErrStopping.Error(), Output: output}
	switch {
	case isLost(cause), end.Cause == child.CauseLease:
		return nil // the job is somebody else's, or the sweeper will give it on
	case end.Cause == child.CauseMaxRuntime:
		fail.Code = ledger.MaxRuntime
		return fail
	case end.ExitCode != nil && c.outcomeOf(*end.ExitCode) == OutcomeSucceed:
		return commands.Succeed{Token: job.Token, Result: c.result(end), ExitCode: end.ExitCode, Output: output}
	case errors.Is(cause, ErrStopping):
		return release
	case end.Err != nil:
		fail.Code, fail.Detail = "lost_child", commands.Detail(end.Err.Error()+"\n"+fail.Detail)
		return fail
	case end.Signal != "":
		if c.isStopping() && isGoodbye(end.Signal) {
			release.Reason = fmt.Sprintf("%s: the command was ended by %s", ErrStopping, end.Signal)
			return release
		}
		fail.Code = "signal"
		return fail
	}
	fail.Code = "exit_code"
	release.Reason = fmt.Sprintf("exit code %d", *end.ExitCode)
	switch c.outcomeOf(*end.ExitCode) {
	case OutcomeRelease:
		release.Snooze = true
		return release
	case OutcomeFailNoRetry:
		fail.NoRetry = true
	case "":
		if first {
			c.cannotRun(&StartError{Code: *end.ExitCode, Err: fmt.Errorf("%s: exit code %d from its first job: %s",
				c.Path, *end.ExitCode, strings.TrimSpace(string(end.StderrTail)))})
			return release
		}
	}
	return fail
}

// isFirst reports whether no attempt has shown yet that the command can be run, and notes what this one
// shows.
func (c *Command) isFirst(end child.End) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.ran
	c.ran = c.ran || end.Signal != "" || end.ExitCode != nil && c.outcomeOf(*end.ExitCode) != ""
	return first
}

// isGoodbye reports whether a signal is one with which a service is ended. Some send it to all of its
// processes at once; to a command of a worker that is stopping, it is part of that and no failure of the job.
func isGoodbye(signal string) bool {
	return signal == "SIGTERM" || signal == "SIGINT" || signal == "SIGHUP"
}

// notStarted: no process ran. A command that cannot run at all gives the job back and stops the worker.
func (c *Command) notStarted(job projection.Job, err, cause error) commands.Command {
	release := commands.Release{Token: job.Token, Reason: reason(err)}
	switch e := (*StartError)(nil); {
	case isLost(cause):
		return nil
	case errors.Is(cause, ErrStopping):
		release.Reason = ErrStopping.Error()
	case errors.As(publicStartError(err), &e):
		c.cannotRun(e)
	default:
		release.Delay = startDelay // out of processes, memory or files just now
		c.started(false)
	}
	return release
}

// isLost reports whether a context ended because the claim is over: then nothing is recorded.
func isLost(cause error) bool {
	return errors.Is(cause, commands.ErrLeaseLost) || errors.Is(cause, commands.ErrCancelled) || errors.Is(cause, ErrNotRenewed)
}

// result is what the child printed; nil if it printed nothing, or if that is not the result.
func (c *Command) result(end child.End) []byte {
	if len(end.Stdout) == 0 || c.NoResult || c.Private {
		return nil
	}
	return end.Stdout
}

// detail is the end of what the child said on stderr.
func (c *Command) detail(end child.End) string {
	if c.Private {
		return ""
	}
	return commands.Detail(string(end.StderrTail))
}

// reason is err as the reason of a release: valid UTF-8 within the limit.
func reason(err error) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", "\uFFFD"), "\uFFFD")
	for len(text) > commands.MaxReason {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
