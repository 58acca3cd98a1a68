//go:build unix

package child

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// schedule decides when a command is sent which signal, without a clock of its own.
type schedule struct {
	killAfter time.Duration
	runtime   instant // the end of its max runtime
	lease     lease
	stopNow   bool // so it was ordered
	killNow   bool

	cause Cause   // why it is being ended; none as long as it may go on
	kill  instant // when it is killed; set with cause, and then only moved forward
}

// next returns TERM, once, when the end begins, and KILL from the moment when the end must come.
func (d *schedule) next(now instant) syscall.Signal {
	was, grace := d.cause, now.add(d.killAfter)
	switch {
	case d.killNow:
		d.end(CauseKill, now)
	case d.stopNow:
		d.end(CauseStop, grace)
	case was != CauseNone:
	case d.runtime.passed(now):
		d.end(CauseMaxRuntime, grace)
	case d.lease.Term.passed(now) && d.lease.Kill == 0:
		d.end(CauseLease, grace)
	case d.lease.Term.passed(now), d.lease.Kill.passed(now):
		d.end(CauseLease, d.lease.Kill)
	}
	switch {
	case d.kill.passed(now), d.lease.Kill.passed(now): // however it began, it does not outlive its lease
		return unix.SIGKILL
	case was != d.cause:
		return unix.SIGTERM
	}
	return 0
}

// end makes kill the latest time to live. The first cause stays.
func (d *schedule) end(cause Cause, kill instant) {
	if d.cause == CauseNone {
		d.cause, d.kill = cause, kill
	}
	d.kill = min(d.kill, kill)
}

// wait returns how long nothing is due. It is short even if that is long, because a timer may stand still while the
// machine sleeps, and the clock does not.
func (d *schedule) wait(now instant) time.Duration {
	instants := []instant{d.kill, d.lease.Kill}
	if d.cause == CauseNone {
		instants = append(instants, d.runtime, d.lease.Term)
	}
	wait := time.Hour
	for _, i := range instants {
		if i != 0 {
			wait = min(wait, 5*time.Second, max(0, time.Duration(i-now)))
		}
	}
	return wait
}
