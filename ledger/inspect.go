package ledger

import (
	"context"
	"time"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/postgres"
	"jobledger/ledger/internal/session"
	"jobledger/ledger/internal/sqlite"
	"jobledger/ledger/internal/sqlite/lockholders"
	"jobledger/ledger/internal/sqlite/place"
)

// What doctor, restore and similar tools ask an engine about a ledger, without opening it for writing.

type (
	// FileFacts describe a ledger's file, apart from its content.
	FileFacts = sqlite.Facts
	// ServerFacts describe a PostgreSQL server and the users of a ledger on it, apart from the ledger's content.
	ServerFacts = postgres.Facts
	// ServerBackend is a connection to the server, as far as this user may see it.
	ServerBackend = postgres.Backend
	// LockHolder is a process that has a ledger open.
	LockHolder = lockholders.Holder
	// FileSystem describes the file system that holds a ledger.
	FileSystem = place.FileSystem
	// Names say how many names a file has, as far as the system says.
	Names = place.Names
	// ExclusiveLock is a lock on a ledger's file that keeps all other users out.
	ExclusiveLock = sqlite.ExclusiveLock
)

// InspectFile runs fn on one snapshot of the ledger in the file at dsn. It migrates nothing, writes nothing
// and leaves no file behind, so it works on read-only media, except that SQLite creates a missing -shm next
// to a -wal. fn must not write. Errors: as those of OpenExisting; ErrForeignSidecar. A network file system is
// no error here, and neither is a second name of the file.
func InspectFile(ctx context.Context, dsn string, fn func(*Tx, FileFacts) error) error {
	return inspectFile(fn)(sqlite.Inspect(ctx, dsn))
}

// InspectFileOnly is InspectFile without the content of the -wal file. While other processes write, that is
// not a consistent state: expect errors, and believe a problem only if it is found twice.
func InspectFileOnly(ctx context.Context, dsn string, fn func(*Tx, FileFacts) error) error {
	return inspectFile(fn)(sqlite.InspectFileOnly(ctx, dsn))
}

func inspectFile(fn func(*Tx, FileFacts) error) func(*sqlite.Inspection, error) error {
	return func(i *sqlite.Inspection, err error) error {
		if err != nil {
			return err
		}
		defer i.Close()
		return fn(snapshotOf(i.Engine, i.Session, i.Head), i.Facts)
	}
}

// InspectServer runs fn on one snapshot of the ledger at dsn, on a PostgreSQL server. It migrates nothing and
// writes nothing, so it works on a standby. Errors: as those of OpenExisting.
func InspectServer(ctx context.Context, dsn string, fn func(*Tx, ServerFacts) error) error {
	i, err := postgres.Inspect(ctx, dsn)
	if err != nil {
		return err
	}
	defer i.Close()
	return fn(snapshotOf(i.Engine, i.Session, i.Head), i.Facts)
}

// snapshotOf returns a reading Tx of a ledger that has no commit loop.
func snapshotOf(e engine.Engine, s *engine.Session, at engine.Head) *Tx {
	return newReadTx(newStore("", e), session.New(s), at)
}

// LockHolders returns the processes that have the ledger at path open, in the order of their ids, on Linux.
// The list may be incomplete: it lacks processes in other containers.
func LockHolders(path string) []LockHolder { return lockholders.List(path) }

// FileSystemOf returns the file system that holds path; the zero FileSystem where the system does not report
// it.
func FileSystemOf(path string) FileSystem { return place.FileSystemOf(path) }

// NamesOf returns the names of the ledger's file at path. It does not open the file.
func NamesOf(path string) Names { return place.NamesOf(path) }

// KeptSuffix is between the name of a ledger that was replaced and the time, in the name that it got then.
const KeptSuffix = place.KeptSuffix

// LockExclusive locks the ledger's file at path, so that it is not open anywhere and cannot be opened. The
// file then holds everything that was committed, without a -wal file. damaged is for a file that SQLite
// cannot bring into that state. Errors: ErrBusy when the ledger is open; ErrSecondName.
func LockExclusive(ctx context.Context, path string, damaged bool) (*ExclusiveLock, error) {
	return sqlite.LockExclusive(ctx, path, damaged)
}

// CopyFile writes a compacted, consistent copy of the ledger in the file at from, which may be in use, to the
// file at to, which must not exist or be empty. Sync the copy before relying on it. It changes nothing at
// from.
func CopyFile(ctx context.Context, from, to string) error { return sqlite.Copy(ctx, from, to) }

// SyncFolder makes the names in a folder durable, where the system can do that.
func SyncFolder(path string) error { return sqlite.SyncFolder(path) }

// IsServerAddress reports whether dsn is the address of a ledger on a PostgreSQL server, and not the path of
// a file.
func IsServerAddress(dsn string) bool { return engine.IsServerAddress(dsn) }

// CheckAddress returns ErrAddress for a text that Open would not take for the path of a file, although it is
// not the address of a server either: see Open. It opens nothing, and its error does not repeat the text,
// which may have a password.
func CheckAddress(dsn string) error {
	if engine.IsServerAddress(dsn) {
		return nil
	}
	return engine.CheckFileAddress(dsn)
}

// ServerAddress returns what Store.Path would return for the ledger at dsn, on a PostgreSQL server, without
// connecting.
func ServerAddress(dsn string) (string, error) { return postgres.Address(dsn) }

// ClockSkew returns how far the clock by which commands are judged was ahead of this machine's, at least,
// when the ledger was opened. It is 0 for a file.
func (s *Store) ClockSkew() time.Duration { return s.info.ClockSkew }
