package files

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

// The reasons for which an operation is refused. Test for them with errors.Is. The ledger is unchanged then,
// and no file was made.
var (
	// ErrExists means that a new ledger would overwrite a file.
	ErrExists = errors.New("files: the path is taken")
	// ErrLeftover means that a -wal or -journal file is next to the path of a new ledger. SQLite would apply it.
	ErrLeftover = errors.New("files: a -wal or -journal file has no database")
	// ErrNoBackup means that there is no ledger at the path of the backup.
	ErrNoBackup = errors.New("files: no backup")
	// ErrUnsound means that the backup fails the checks of SQLite or of audit.Verify.
	ErrUnsound = errors.New("files: the backup is damaged")
	// ErrSameFile means that the backup is the ledger that it would replace.
	ErrSameFile = errors.New("files: the backup is the ledger")
	// ErrForeign means that the file to be replaced is not a ledger, or one of a newer version.
	ErrForeign = errors.New("files: not a ledger that may be replaced")
	// ErrUnreadable means that the ledger to be replaced cannot be read, so what would be lost is unknown.
	ErrUnreadable = errors.New("files: the ledger cannot be read")
	// ErrOwner means that the new ledger cannot be given to the owner of the old one.
	ErrOwner = errors.New("files: the owner cannot be changed")
	// ErrEmpty means that a history has no event.
	ErrEmpty = errors.New("files: no event")
	// ErrBadHistory means that a line of a history, or the history as a whole, is wrong.
	ErrBadHistory = errors.New("files: the history is wrong")
	// ErrBadSource means that an event of the ledger to be copied cannot be replayed.
	ErrBadSource = errors.New("files: the ledger cannot be replayed")
)

// refusal is an error with a text of its own that also is one of the reasons above.
type refusal struct {
	error
	reason error
}

func (r *refusal) Unwrap() []error { return []error{r.reason, r.error} }

// refuse returns an error with this text that errors.Is finds as reason. The format may wrap an error with
// %w.
func refuse(reason error, format string, args ...any) error {
	return &refusal{fmt.Errorf(format, args...), reason}
}

// InUseError refuses to replace a ledger that is open.
type InUseError struct {
	Path    string
	Holders []ledger.LockHolder // the other processes that have it open; empty where the system does not say
}

// Error names the processes.
func (e *InUseError) Error() string {
	names := words.Of(e.Holders, func(h ledger.LockHolder) string {
		return fmt.Sprintf("%s (pid %d)", cmp.Or(h.Program, "a process"), h.PID)
	})
	switch len(names) {
	case 0:
		return fmt.Sprintf("another process has %s open; nothing was changed", e.Path)
	case 1:
		return fmt.Sprintf("%s has %s open; nothing was changed", names[0], e.Path)
	}
	return fmt.Sprintf("%s have %s open; nothing was changed", strings.Join(names, ", "), e.Path)
}

// AtWorkError refuses to replace a ledger whose workers seem to be alive.
type AtWorkError struct {
	Workers []status.Worker // at least one
}

// Error names the first worker.
func (e *AtWorkError) Error() string {
	n := int64(len(e.Workers))
	if n == 1 {
		return fmt.Sprintf("the worker %s seems to be at work", e.Workers[0].Name)
	}
	return fmt.Sprintf("%s seem to be at work, among them %s", words.Count(n, "worker"), e.Workers[0].Name)
}

// LossError refuses to replace a ledger with one that lacks events of it.
type LossError struct {
	Lost audit.Lost
}

// Error counts the events.
func (e *LossError) Error() string {
	return words.Count(e.Lost.Events, "event") + " would be lost"
}
