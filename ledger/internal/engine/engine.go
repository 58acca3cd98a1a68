// Package engine is the contract between a ledger and the database that holds it: what package ledger needs
// of SQLite and of PostgreSQL. The tables are the same in both, and so is nearly every statement; what
// differs is behind the interface [Engine].
//
// It holds no SQL of a ledger and knows neither events nor jobs. Package ledger gives its names on to its
// users.
//
// Files in reading order: engine.go (the interface), burst.go and latesync.go (what an engine may offer
// besides), session.go (one connection), rows.go (the rows of a query), bulk.go (statements that write many
// rows), errors.go (sentinels), schema.go and enum_table.go (comparing a schema, and tables of words, with
// what they should be).
//
// Held by TestBulkWritesEveryRow, TestPutConflictIsOfTheLoserOnly and TestDamageErrorsAreClassified of
// package ledger, and by TestObjectsAreRepaired of package schema.
package engine

import (
	"context"
	"time"
)

// Engine is a database that holds one ledger. Only the commit loop of a Store calls Begin, Commit, Rollback
// and Notify; the other methods are safe for concurrent use.
type Engine interface {
	// Info returns what Open found out. It does not change.
	Info() Info

	// Begin opens a transaction that holds the write lock. The session is the one of the last Begin, unless its
	// connection was lost.
	Begin(ctx context.Context, o BeginOptions) (*Session, Head, error)
	// Commit makes the transaction durable; a LateSyncer may leave that to Sync. With topics it also sends a
	// notification to other processes, if that costs nothing. After ErrUnknown the outcome is not known. After
	// any other error nothing is durable, and ErrRetry allows to run the transaction again.
	Commit(notify Topic) error
	// Rollback ends the transaction. An error means that the connection is of no use any more.
	Rollback() error

	// OpenReader opens a connection for reading.
	OpenReader(ctx context.Context) (*Session, error)
	// BeginSnapshot begins a snapshot on such a connection.
	BeginSnapshot(ctx context.Context, s *Session) (Head, error)
	// CheckReplaced returns ErrReplaced if another ledger has taken the place of the one that was opened.
	CheckReplaced() error

	// Integrity runs the database's own check and returns the problems that it found.
	Integrity(ctx context.Context, s *Session) (problems []string, err error)
	// IntegrityInSteps is Integrity in several reads of a ledger whose last event is the one at tail; events do
	// not change.
	IntegrityInSteps(ctx context.Context, tail int64, read func(func(*Session) error) error) ([]string, error)
	// HighestPos returns the highest pos that there ever was, if the database remembers it.
	HighestPos(ctx context.Context, s *Session) (pos int64, known bool, err error)
	// SchemaDiff returns the objects of the schema that are not as they should be.
	SchemaDiff(ctx context.Context, s *Session) ([]Object, error)
	// RepairObject restores one of them to its definition.
	RepairObject(s *Session, o Object) error
	// DropGuards drops the guards, where that makes appending faster.
	DropGuards(ctx context.Context, s *Session) error
	// HasTable reports whether the ledger has a table of this name.
	HasTable(ctx context.Context, s *Session, name string) (bool, error)

	// Vacuum writes a compacted copy of the ledger to path and returns the pos of the copy's last event.
	Vacuum(ctx context.Context, path string) (tail int64, err error)
	// Checkpoint frees the space of what was erased; whole is false if a reader prevented a part of it.
	Checkpoint(ctx context.Context) (whole bool, err error)
	// TrimWAL frees the space of a write-ahead log that a long read let grow, if that takes no waiting.
	TrimWAL(ctx context.Context) (trimmed bool, err error)
	// MoveWAL moves the write-ahead log into the file, as far as possible without waiting.
	MoveWAL(ctx context.Context) error
	// FreePages gives up to so many free pages of the file back to the system, in the transaction of s, and
	// returns how many are left; 0 where the database does so itself, or cannot.
	FreePages(ctx context.Context, s *Session, most int) (left int64, err error)
	// Diagnose adds the cause to an error, as far as the system knows it.
	Diagnose(err error) error

	// Notify notifies other processes of the topics, unless the last Commit did. It is best effort.
	Notify(Topic)
	// Until ctx ends, Listen calls wake with the topics of a notification of another process, or with all topics
	// if another process may have committed.
	Listen(ctx context.Context, wake func(Topic))
	// Close is called once, after all other methods have returned.
	Close() error
}

// Info is what an engine knows of its ledger since Open.
type Info struct {
	Path          string        // the absolute path of the file, or the address on a server without a password
	Sync          string        // how durable a commit is: "full" or "normal"
	SchemaVersion int           // of the ledger, after the migrations
	ReadOnly      error         // why this program may only read the ledger; nil: it may write
	Note          string        // what a reader should know where it may only be read; "": nothing
	Created       bool          // this Open made the ledger
	Altered       error         // ErrAltered: the schema was not as it should be, so nothing must be written
	ClockSkew     time.Duration // how far the server's clock is ahead of this machine's, at least; 0 for a file
}

// BeginOptions are the settings of one transaction.
type BeginOptions struct {
	Since     time.Time     // when the first function began to wait for the write lock
	LockWait  time.Duration // how long after Since Begin gives up with ErrBusy
	Exclusive bool          // no other process writes, so that there is no queue for the lock
	// WarmupQueries are sent in the round trip that begins the transaction, if there is such a round trip. They
	// are left out after a lost connection or an error.
	WarmupQueries []WarmupQuery
}

// Head describes a ledger at the beginning of a transaction.
type Head struct {
	Tail, TailAt int64     // pos and at of the last event
	Now          time.Time // by the engine's own clock; zero: it has none
	Prefetched   []Answer  // to BeginOptions.WarmupQueries; none: they were not sent
}
