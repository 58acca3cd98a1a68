package ledger

import (
	"context"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/postgres"
	"jobledger/ledger/internal/sqlite"
)

// Open opens the ledger at dsn and creates it if it does not exist. dsn is the path of a file, taken
// literally, or "sqlite:PATH?OPTIONS" with these options:
//
//	sync=full     every acknowledged command survives a power cut (the default)
//	sync=normal   a power cut may lose the last commands, never consistency
//	network=allow open on a network file system in spite of SQLite's warning
//	names=allow   open a file that has a second name: a hard link, or a mount of the file without its folder
//
// or "postgres://USER@HOST/DATABASE?OPTIONS", whose options are those of libpq, sync as above, and:
//
//	schema=NAME   the schema that holds the ledger (default jobledger)
//	listen=off    a connection pooler does not support LISTEN
//
// What other programs take as an address is refused with ErrAddress rather than taken for the name of a file:
// "host=… dbname=…", "file:jobs.db" or any other unknown word with a colon, "sqlite://…", and options without
// "sqlite:". A file that has such a name is "./NAME".
//
// A file with an older schema is migrated. On a server that is for Migrate alone, and Open returns
// ErrOlderSchema. A ledger on a server with a newer schema is opened if that allows it; its functions Write
// return ErrNewerSchema where a program of this version may only read it.
//
// Errors: ErrAddress, ErrNotALedger, ErrOlderSchema, ErrNewerSchema, ErrPooled, ErrForeignSidecar,
// ErrSecondName, ErrBusy, ErrFull, ErrIO, ErrReadOnly, ErrDamaged, and those of the file system.
func Open(ctx context.Context, dsn string) (*Store, error) { return open(ctx, dsn, true, false) }

// OpenExisting is Open for a ledger that must exist: ErrNoLedger if it does not.
func OpenExisting(ctx context.Context, dsn string) (*Store, error) {
	return open(ctx, dsn, false, false)
}

// OpenOnce is OpenExisting for a process that makes one command and ends. On a server it looks at the guards,
// which are the triggers that refuse what changes history, and not at the definition of each table, index and
// view, which costs more than such a command. Functions Write do not return ErrAltered for these: verify, and
// every process that stays, finds what was altered.
func OpenOnce(ctx context.Context, dsn string) (*Store, error) { return open(ctx, dsn, false, true) }

// Migrate brings the schema of the ledger at dsn, which must exist, up to date. For a ledger on a server it
// and the writers wait for each other. Errors: as those of OpenExisting; ErrReadOnly for a user that does not
// own the schema.
func Migrate(ctx context.Context, dsn string) error {
	if engine.IsServerAddress(dsn) {
		return postgres.Migrate(ctx, dsn)
	}
	s, err := OpenExisting(ctx, dsn) // which migrates a file
	if err != nil {
		return err
	}
	return s.Close()
}

func open(ctx context.Context, dsn string, create, once bool) (s *Store, err error) {
	var e engine.Engine
	if engine.IsServerAddress(dsn) {
		e, err = postgres.Open(ctx, dsn, create, once)
	} else {
		e, err = sqlite.Open(ctx, dsn, create)
	}
	if err == nil {
		s = newStore(dsn, e)
		go s.commitLoop()
	}
	return s, err
}

// ExpectInbox says that rows are about to be committed into the inbox of the ledger in the file at path.
func ExpectInbox(path string) { sqlite.ExpectInbox(path) }
