package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/commands"
	"jobledger/ledger"
)

// Exit codes. One table for every command; scripts branch on them, so a number never changes its meaning.
const (
	exitOK           = 0
	exitUnexpected   = 1
	exitUsage        = 2
	exitNothing      = 3
	exitLeaseLost    = 4
	exitCancelled    = 5
	exitConflict     = 6
	exitNoJob        = 7
	exitDiscrepancy  = 8
	exitNotSucceeded = 9
	exitBusy         = 75
	exitTimedOut     = 124
	exitCannotRun    = 126
	exitNotFound     = 127
)

// exitMeanings says in words what each code tells the caller, in the order of the help and the man page.
var exitMeanings = []struct {
	code int
	text string
}{
	{exitOK, "done"},
	{exitUnexpected, "unexpected error"},
	{exitUsage, "wrong usage: unknown command or flag, missing argument, value out of range"},
	{exitNothing, "nothing there: the queue is empty, or nothing matches"},
	{exitLeaseLost, "the lease is lost: the job may belong to somebody else now"},
	{exitCancelled, "the job is cancelled: stop working on it"},
	{exitConflict, "conflict: the job's state, key or content does not permit it"},
	{exitNoJob, "no such job"},
	{exitDiscrepancy, "a check found a discrepancy"},
	{exitNotSucceeded, "the awaited job did not succeed"},
	{exitBusy, "busy or unavailable: try again later"},
	{exitTimedOut, "timed out waiting"},
	{exitCannotRun, "the worker's command cannot be run"},
	{exitNotFound, "the worker's command is not found"},
}

// exitError is an error that chooses its own exit code, and may offer a hint of what to do about it.
type exitError struct {
	Code int
	Err  error
	Hint string // one line without full stop; empty for none
}

func (e *exitError) Error() string { return e.Err.Error() }
func (e *exitError) Unwrap() error { return e.Err }

// exitf is an error that ends the program with code. The format may wrap another error with %w.
func exitf(code int, format string, args ...any) error {
	return &exitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// usagef is an error in what the user typed.
func usagef(format string, args ...any) error {
	return exitf(exitUsage, format, args...)
}

// withHint adds a hint to err, which may be nil, and keeps its exit code. A hint that err brings along
// already stands.
func withHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	code, _, hint := explain(err)
	if hint != "" {
		return err
	}
	return &exitError{Code: code, Err: err, Hint: fmt.Sprintf(format, args...)}
}

// knownErrors maps the errors of other packages to exit codes. The first row that errors.Is matches wins,
// so put the particular before the general.
var knownErrors = []struct {
	is   error
	code int
	hint string
}{
	{commands.ErrCancelled, exitCancelled, ""},
	{commands.ErrLeaseLost, exitLeaseLost, ""},
	{commands.ErrConflict, exitConflict, ""},
	{commands.ErrNoJob, exitNoJob, ""},
	{commands.ErrInvalid, exitUsage, ""},
	{ledger.ErrAddress, exitUsage, "--db and JOBLEDGER_DB take the path of a file, sqlite:PATH?sync=normal, or postgres://USER@HOST/DATABASE"},
	{ledger.ErrNoLedger, exitUsage, "'jobledger init' makes one; --db or JOBLEDGER_DB says where"},
	{ledger.ErrNotALedger, exitUsage, "give --db the path of a ledger, or of a file that does not exist yet"},
	{ledger.ErrNewerSchema, exitUsage, ""},
	{ledger.ErrStray, exitUnexpected, "end what still uses the old ledger and move its -wal and -shm away, then try again"},
	{ledger.ErrReplaced, exitBusy, "the file was exchanged under this process; start it again"},
	{ledger.ErrFull, exitBusy, "the disk is full; free some space and try again: what was done is not done twice"},
	{syscall.EMFILE, exitBusy, "this process may open no more files; raise 'ulimit -n' and try again"},
	{syscall.ENFILE, exitBusy, "this machine may open no more files; try again when some are closed"},
	{ledger.ErrIO, exitBusy, "a fault of the disk, a quota, or a limit that 'ulimit -a' shows; put it right and try again: what was done is not done twice"},
	{ledger.ErrUnknown, exitBusy, "send the same command again: if it was done, you get the same answer"},
	{ledger.ErrBusy, exitBusy, "another process holds the write lock for long; try again"},
	{ledger.ErrReadOnly, exitUnexpected, "you need to be allowed to write the ledger, its folder, and the -wal and -shm beside it"},
	{ledger.ErrDamaged, exitUnexpected, "'jobledger verify' says what is wrong; a copy that 'jobledger backup' made is the way back"},
	{ledger.ErrUnknownKind, exitUnexpected, "a newer jobledger wrote it, or it is damaged; 'jobledger verify' says more"},
	{context.DeadlineExceeded, exitTimedOut, ""},
	{context.Canceled, exitUnexpected, ""},
	{syscall.ENAMETOOLONG, exitUsage, "give a shorter path"},
	{syscall.ENOSPC, exitBusy, "the disk is full; free some space and try again"},
	{syscall.EDQUOT, exitBusy, "the disk quota is used up; free some space and try again"},
	// A reader that went away (… | head) has seen what it wanted.
	{syscall.EPIPE, exitOK, ""},
}

// serverHints are what to do where the ledger is in PostgreSQL.
var serverHints = []struct {
	is   error
	hint string
}{
	{ledger.ErrAddress, "--db and JOBLEDGER_DB take postgres://USER@HOST/DATABASE; this program's own options are ?schema=NAME, ?sync=normal and ?listen=off"},
	{ledger.ErrNoLedger, "'jobledger init' makes one, in a database that is there ('createdb' makes that); --db or JOBLEDGER_DB says where"},
	{ledger.ErrNotALedger, "give --db another database, or another schema of this one: ?schema=NAME"},
	{ledger.ErrFull, "the server's disk is full; free some space there and try again: what was done is not done twice"},
	{ledger.ErrIO, "the server is away or out of reach; try again: what was done is not done twice"},
	{ledger.ErrUnknown, "send the same command again: if it was done, you get the same answer"},
	{ledger.ErrBusy, "another process holds the write lock for long, or the server takes no more connections; 'jobledger doctor' may say more, else try again"},
	{ledger.ErrReadOnly, "to write takes the rights of jobledger_worker, to make a ledger those of its owner, also to put its guards back (see schema/postgres/roles.sql), and a server that is no standby"},
	{ledger.ErrDamaged, "'jobledger verify' says what is wrong; a backup of the database is the way back"},
}

// serverHint is the hint for err where the ledger is in PostgreSQL. One that is for this very error stays.
func serverHint(err error, hint string) string {
	if _, ok := errors.AsType[*exitError](err); ok {
		return hint
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok { // of a file here
		return hint
	}
	if errors.Is(err, fs.ErrPermission) {
		return "a user of the ledger needs the rights of jobledger_worker or jobledger_auditor: see schema/postgres/roles.sql"
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(e.Code, "28") {
		return "PGPASSWORD, ~/.pgpass or --db gives the password; the server's pg_hba.conf says who may come, and from where"
	}
	for _, known := range serverHints {
		if errors.Is(err, known.is) {
			return known.hint
		}
	}
	return hint
}

// explain says how the program ends after err: the exit code, why (without the program's name) and what
// to do about it. An exitError chooses for itself; any other error goes through knownErrors. A code of 0
// with an error means: end quietly.
func explain(err error) (code int, message, hint string) {
	if err == nil {
		return exitOK, "", ""
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.Code, err.Error(), e.Hint
	}
	for _, known := range knownErrors {
		if errors.Is(err, known.is) {
			return known.code, err.Error(), known.hint
		}
	}
	return exitUnexpected, err.Error(), ""
}
