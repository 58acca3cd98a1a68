package ledger

import (
	"errors"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/engine"
)

// Errors that callers branch on.
var (
	ErrUnknownKind = event.ErrUnknownKind // written by a newer program, or damaged
	ErrClosed      = engine.ErrClosed

	// ErrNested: a function of Store.Write called what writes to the same Store, and would wait for itself.
	ErrNested = errors.New("ledger: a write within a write of the same store")

	// ErrTxDone: the function that a Tx was given to has ended.
	ErrTxDone = errors.New("ledger: the function of this transaction has ended")

	ErrConflict = engine.ErrConflict // another write came first
	ErrUnknown  = engine.ErrUnknown  // COMMIT or its sync failed: it may or may not be durable
	ErrBusy     = engine.ErrBusy     // no write lock in time
	ErrFull     = engine.ErrFull     // the disk is full: nothing was written, reads go on
	// of the disk, the file system or a limit of this process; it may pass
	ErrIO             = engine.ErrIO
	ErrReadOnly       = engine.ErrReadOnly       // for this process; nothing was written
	ErrAddress        = engine.ErrAddress        // a DSN that Open does not understand
	ErrEngine         = engine.ErrEngine         // what only the other kind of ledger can do
	ErrNoLedger       = engine.ErrNoLedger       // there is no such file or schema
	ErrNotALedger     = engine.ErrNotALedger     // the file is something else; untouched
	ErrNewerSchema    = engine.ErrNewerSchema    // this program is too old to read or to write it; untouched
	ErrOlderSchema    = engine.ErrOlderSchema    // on a server; Migrate brings it up to date; untouched
	ErrPooled         = engine.ErrPooled         // a pooler gives each transaction another session; untouched
	ErrNoSession      = engine.ErrNoSession      // an ErrBusy: all sessions of a pooler are taken
	ErrReplaced       = engine.ErrReplaced       // the file was replaced while it was open; nothing was written
	ErrForeignSidecar = engine.ErrForeignSidecar // a -wal or -shm file of another ledger; untouched
	ErrSecondName     = engine.ErrSecondName     // a hard link, or mounted without its folder; untouched
	ErrDamaged        = event.ErrDamaged         // bytes that no version of this program could have stored
	ErrAltered        = engine.ErrAltered        // an ErrDamaged: foreign tables or triggers; nothing written
)
