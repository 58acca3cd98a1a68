//go:build !unix

package child

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

var errNoChildren = fmt.Errorf("worker: running commands on %s: %w", runtime.GOOS, errors.ErrUnsupported)

type Process struct{ Pid int }

func Start(context.Context, Spec) (*Process, error) { return nil, errNoChildren }

func (c *Process) Extend(Deadlines) error { return errNoChildren }
func (c *Process) Stop()                  {}
func (c *Process) Kill()                  {}
func (c *Process) Done() <-chan struct{}  { return nil }
func (c *Process) Wait() End              { return End{Err: errNoChildren} }

// Supervise makes this process the supervising parent of one command, where the system is a Unix.
func Supervise() error { return errNoChildren }
