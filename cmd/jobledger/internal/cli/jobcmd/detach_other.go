//go:build !unix

package jobcmd

import "os/exec"

// Detach does nothing: workers run no commands here.
func Detach(*exec.Cmd) {}

// SignalNumber is 0: there are no signals.
func SignalNumber(string) int { return 0 }
