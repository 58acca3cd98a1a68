//go:build unix

package jobcmd

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Detach makes cmd a process of a session of its own, so that the end of a terminal does not end it.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// SignalNumber is the number of a signal, such as 9 for SIGKILL; 0: it is none.
func SignalNumber(name string) int { return int(unix.SignalNum(name)) }
