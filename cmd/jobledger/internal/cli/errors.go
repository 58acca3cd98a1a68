package cli

import (
	"errors"
	"strconv"

	"jobledger/cmd/jobledger/internal/fault"
)

// Exit codes, by the names that verbs use; package fault says what they mean.
const (
	ExitOK           = fault.ExitOK
	ExitUnexpected   = fault.ExitUnexpected
	ExitUsage        = fault.ExitUsage
	ExitNothing      = fault.ExitNothing
	ExitLeaseLost    = fault.ExitLeaseLost
	ExitCancelled    = fault.ExitCancelled
	ExitConflict     = fault.ExitConflict
	ExitNoJob        = fault.ExitNoJob
	ExitDiscrepancy  = fault.ExitDiscrepancy
	ExitNotSucceeded = fault.ExitNotSucceeded
	ExitBusy         = fault.ExitBusy
	ExitTimedOut     = fault.ExitTimedOut
	ExitRunFailed    = fault.ExitRunFailed
	ExitCannotRun    = fault.ExitCannotRun
	ExitNotFound     = fault.ExitNotFound
)

// Error is [fault.Error].
type Error = fault.Error

// Exitf is [fault.Exitf].
func Exitf(code int, format string, args ...any) error { return fault.Exitf(code, format, args...) }

// Usagef is [fault.Usagef].
func Usagef(format string, args ...any) error { return fault.Usagef(format, args...) }

// Quietly ends the program with a code, and without a word.
func Quietly(code int) error {
	return &fault.Error{Code: code, Err: errors.New("exit code " + strconv.Itoa(code)), Quiet: true}
}

// WithHint is [fault.WithHint].
func WithHint(err error, format string, args ...any) error {
	return fault.WithHint(err, format, args...)
}
