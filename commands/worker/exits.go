package worker

import (
	"errors"
	"fmt"
	"strings"

	"jobledger/commands"
	"jobledger/commands/worker/child"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Outcome is what an exit code of a command means for its job.
type Outcome string

// The outcomes that Command.Map may give to an exit code.
const (
	OutcomeSucceed     Outcome = "succeed"       // the job has succeeded
	OutcomeFail        Outcome = "fail"          // a failure, retried while attempts are left
	OutcomeFailNoRetry Outcome = "fail-no-retry" // a failure that is not retried
	OutcomeRelease     Outcome = "release"       // run again after a backoff; the hundredth is a failure
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{OutcomeSucceed, OutcomeFail, OutcomeFailNoRetry, OutcomeRelease}
}

// The exit codes with a meaning of their own, taken from sysexits.h, qmail and the shells.
const (
	exitTempFail  = 75
	exitSoftFail  = 111
	exitPermanent = 100
	exitCannotRun = 126
	exitNotFound  = 127
)

// outcomeOf returns what an exit code means; "" means that the command cannot be run.
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

// ending returns the command that records how an attempt ended, or nil if there is nothing to record.
func (c *Command) ending(
	t *task, end child.End, output event.Output, cause error,
) commands.Command {
	job := t.current()
	t.exitCode, t.signal = end.ExitCode, end.Signal
	cost := event.Cost(end.Cost)
	first := c.noteRan(end)
	fail := commands.Fail{
		Token: job.Token, Detail: c.detail(end), ExitCode: end.ExitCode, Signal: end.Signal, Output: output,
		Cost: cost,
	}
	release := commands.Release{Token: job.Token, Reason: ErrStopping.Error(), Output: output,
		ExitCode: end.ExitCode, Cost: cost}
	switch {
	case isLost(cause):
		return reportStop(job, cause, end)
	case end.Cause == child.CauseLease:
		return nil // the claim is over, or the sweeper will reclaim it
	case end.Cause == child.CauseMaxRuntime:
		fail.Code = event.MaxRuntime
		return fail
	case end.ExitCode != nil && c.outcomeOf(*end.ExitCode) == OutcomeSucceed:
		return commands.Succeed{Token: job.Token, Result: c.result(end), ExitCode: end.ExitCode, Output: output,
			Cost: cost}
	case errors.Is(cause, ErrStopping):
		return release
	case end.Err != nil:
		fail.Code, fail.Detail = "lost_child", commands.Detail(end.Err.Error()+"\n"+fail.Detail)
		return fail
	case end.Signal != "":
		if c.isStopping() && isServiceStop(end.Signal) {
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
		if c.Carried {
			fail.Code, fail.NoRetry = codeOf(*end.ExitCode), true
			return fail
		}
		if first {
			c.cannotRun(&StartError{Code: *end.ExitCode, Err: fmt.Errorf("%s: exit code %d from its first job: %s",
				c.Path, *end.ExitCode, strings.TrimSpace(string(end.StderrTail)))})
			return release
		}
	}
	return fail
}

// noteRan records whether this attempt has shown that the command can be run, and reports whether none before
// it had.
func (c *Command) noteRan(end child.End) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.ran
	c.ran = c.ran || end.Signal != "" || end.ExitCode != nil && c.outcomeOf(*end.ExitCode) != ""
	return first
}

// isServiceStop reports whether a signal is one that stops a service. Service managers send it to all
// processes of a service; for a command of a stopping worker it is therefore not a failure.
func isServiceStop(signal string) bool {
	return signal == "SIGTERM" || signal == "SIGINT" || signal == "SIGHUP"
}

// notStarted returns the command that records a failed start. A command that cannot be run stops the worker.
func (c *Command) notStarted(t *task, err, cause error) commands.Command {
	job := t.current()
	release := commands.Release{Token: job.Token, Reason: reason(err)}
	switch e := (*StartError)(nil); {
	case isLost(cause):
		return reportStop(job, cause, child.End{})
	case errors.Is(cause, ErrStopping):
		release.Reason = ErrStopping.Error()
	case errors.As(publicStartError(err), &e) && c.Carried && !e.here:
		return cannotCarry(job, codeOf(e.Code), e)
	case errors.As(publicStartError(err), &e):
		c.cannotRun(e)
	default:
		release.Delay = startDelay // a shortage of processes, memory or files
		c.noteStart(false)
	}
	return release
}

// reportStop returns the command that records that the work on a lost claim has ended, or nil where the
// ledger has not refused the claim: it may be live.
func reportStop(job projection.Job, cause error, end child.End) commands.Command {
	if !errors.Is(cause, commands.ErrLeaseLost) && !errors.Is(cause, commands.ErrCancelled) {
		return nil
	}
	return commands.ReportStop{Token: job.Token, ExitCode: end.ExitCode, Signal: end.Signal,
		Cost: event.Cost(end.Cost)}
}

// isLost reports whether a context ended because the claim is over, so that nothing is to be recorded.
func isLost(cause error) bool {
	return errors.Is(cause, commands.ErrLeaseLost) || errors.Is(cause, commands.ErrCancelled) ||
		errors.Is(cause, ErrNotRenewed)
}

// result returns the kept standard output, or nil if it is empty or is not the result.
func (c *Command) result(end child.End) []byte {
	if len(end.Stdout) == 0 || c.NoResult || c.Private {
		return nil
	}
	return end.Stdout
}

// detail returns the end of the standard error output.
func (c *Command) detail(end child.End) string {
	if c.Private {
		return ""
	}
	return commands.Detail(string(end.StderrTail))
}

// reason returns the text of err as the reason of a release: valid UTF-8 within the limit.
func reason(err error) string { return reasonText(err.Error()) }

// reasonText returns text as a reason: valid UTF-8 within the limit, cut with an ellipsis.
func reasonText(text string) string {
	const cut = "…"
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
	if len(text) <= commands.MaxReason {
		return text
	}
	text = text[:commands.MaxReason-len(cut)]
	return strings.ToValidUTF8(text, "") + cut // without a part of a character
}

// stopOf returns the command that records the end of the work where c, which would have done so, was refused.
func stopOf(c commands.Command) commands.Command {
	switch c := c.(type) {
	case commands.Succeed:
		return commands.ReportStop{Token: c.Token, ExitCode: c.ExitCode, Cost: c.Cost}
	case commands.Fail:
		return commands.ReportStop{Token: c.Token, ExitCode: c.ExitCode, Signal: c.Signal, Cost: c.Cost}
	case commands.Release:
		return commands.ReportStop{Token: c.Token, Cost: c.Cost}
	case commands.Cancel:
		return commands.ReportStop{Token: c.Token}
	}
	return nil
}
