package engine

import (
	"errors"

	"jobledger/ledger/event"
)

// Errors that callers branch on. Package ledger exports all but the last two.
var (
	ErrClosed         = errors.New("ledger: store is closed")
	ErrConflict       = errors.New("ledger: conflict")
	ErrUnknown        = errors.New("ledger: commit outcome unknown")
	ErrBusy           = errors.New("ledger: busy")
	ErrFull           = errors.New("ledger: disk full")
	ErrIO             = errors.New("ledger: input or output failed")
	ErrReadOnly       = errors.New("ledger: may only be read")
	ErrAddress        = errors.New("ledger: not the address of a ledger")
	ErrEngine         = errors.New("ledger: not with this database")
	ErrNoLedger       = errors.New("ledger: no ledger")
	ErrNotALedger     = errors.New("ledger: not a ledger")
	ErrPooled         = errors.New("ledger: not through this pooler")
	ErrOlderSchema    = errors.New("ledger: schema older than program")
	ErrNewerSchema    = errors.New("ledger: schema newer than program")
	ErrReplaced       = errors.New("ledger: file was replaced or removed")
	ErrForeignSidecar = errors.New("ledger: stray file next to it")
	ErrSecondName     = errors.New("ledger: the file has a second name")
	ErrDamaged        = event.ErrDamaged
	// ErrNoSession is an ErrBusy: a pooler gave no session in time.
	ErrNoSession error = noSession{}
	// ErrAltered is an ErrDamaged: the schema is not what the migrations make, so that a write could run what
	// another user has put there.
	ErrAltered error = altered{}

	// ErrRetry reports that the transaction was given up and nothing of it is durable: the caller may run it
	// again.
	ErrRetry = errors.New("ledger: the transaction was given up")
	// ErrConstraint reports that a row violates a constraint, or that a trigger refused it.
	ErrConstraint = errors.New("ledger: constraint violated")
)

type noSession struct{}

func (noSession) Error() string { return "ledger: no session of the server" }

func (noSession) Is(target error) bool { return target == ErrBusy }

type altered struct{}

func (altered) Error() string { return "ledger: altered" }

func (altered) Is(target error) bool { return target == ErrDamaged }
