//go:build !unix

package child

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// errUnsupported is the answer of a system without the calls that supervision needs.
var errUnsupported = fmt.Errorf("commands cannot be run on %s, only on a Unix; a program can claim jobs "+
	"over HTTP, by 'pipe', or as a handler in Go: %w", runtime.GOOS, errors.ErrUnsupported)

// supported returns errUnsupported.
func supported() error { return errUnsupported }

// Process is one running command, which exists on a Unix only.
type Process struct{ Pid int }

// Start fails: commands run on a Unix only.
func Start(context.Context, Spec) (*Process, error) { return nil, errUnsupported }

// Extend fails.
func (p *Process) Extend(Deadlines) error { return errUnsupported }

// Stop does nothing.
func (p *Process) Stop() {}

// Kill does nothing.
func (p *Process) Kill() {}

// LeaseIsOver does nothing.
func (p *Process) LeaseIsOver() {}

// Done returns nil.
func (p *Process) Done() <-chan struct{} { return nil }

// Wait fails.
func (p *Process) Wait() End { return End{Err: errUnsupported} }

// Supervise makes this process the supervising parent of one command, on a Unix.
func Supervise() error { return errUnsupported }
