package main

import (
	"os/exec"
	"syscall"
)

// endsWithTest makes a process end when this one does, even by a panic: some would otherwise run for ever.
func endsWithTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
