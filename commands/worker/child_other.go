//go:build !unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

var errNoChildren = fmt.Errorf("worker: running commands on %s: %w", runtime.GOOS, errors.ErrUnsupported)

type child struct{ Pid int }

func startChild(context.Context, childSpec) (*child, error) { return nil, errNoChildren }

func (c *child) Extend(leaseDeadlines) error { return errNoChildren }
func (c *child) Stop()                       {}
func (c *child) Kill()                       {}
func (c *child) Done() <-chan struct{}       { return nil }
func (c *child) Wait() childEnd              { return childEnd{Err: errNoChildren} }

// Supervise makes this process the supervising parent of one command, where the system is a Unix.
func Supervise() error { return errNoChildren }
