//go:build unix

package child

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// schedule decides which signal a command is sent at what time. It reads no clock.
type schedule struct {
	killAfter time.Duration
	runtime   instant // the end of its maximum runtime
	lease     lease
	stopNow   bool // Stop was called
	killNow   bool // Kill was called

	cause Cause   // why it is being ended; CauseNone while it may run
	kill  instant // when it is killed; set with cause, then only made earlier
}

// next returns TERM, once, when the end begins, and KILL from the time at which the command must be gone.
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
	case d.kill.passed(now), d.lease.Kill.passed(now): // whatever the cause, it does not outlive its lease
		return unix.SIGKILL
	case was != d.cause:
		return unix.SIGTERM
	}
	return 0
}

// end sets when the command is killed at the latest. The first cause stays.
func (d *schedule) end(cause Cause, kill instant) {
	if d.cause == CauseNone {
		d.cause, d.kill = cause, kill
	}
	d.kill = min(d.kill, kill)
}

// wait returns how long nothing is due, 5 seconds at most: a timer may stop while the machine sleeps, and the
// clock does not.
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
