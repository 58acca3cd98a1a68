package ledger

import (
	"context"
	"time"
)

// engine is the database that holds a ledger: what SQLite and PostgreSQL do differently. Their tables are the same, and
// so is nearly every statement. Only the commit loop calls begin, commit and rollback.
type engine interface {
	// begin opens a transaction that holds the write lock, for a function that has waited for it since then.
	begin(ctx context.Context, since time.Time) (*session, standing, error)
	// commit makes it durable. After ErrUnknown nobody knows whether it is; after any other error it is not, and errRedo
	// says that it may be done again.
	commit() error
	rollback() error

	// snapshot opens a connection for reading.
	snapshot(ctx context.Context) (*session, error)
	// look begins a snapshot on such a connection.
	look(ctx context.Context, s *session) (standing, error)
	// along reads the committed events behind after, up to until, quicker than tx can, whose own they are not; stop ends
	// that.
	along(tx *Tx, after, until int64) (rows recordSource, stop func(), err error)
	// same makes sure that the ledger is still the one that was opened.
	same() error
	// integrity is Tx.Integrity, and highest Tx.Highest.
	integrity(ctx context.Context, tx *Tx) (problems []string, err error)
	highest(ctx context.Context, tx *Tx) (pos int64, known bool, err error)
	// differing returns the objects of the schema that are not as they should be.
	differing(ctx context.Context, tx *Tx) ([]object, error)
	// mend makes one of them as it should be.
	mend(tx *Tx, o object) error
	// vacuum is Store.Vacuum, and checkpoint Store.Checkpoint.
	vacuum(ctx context.Context, path string) (tail int64, err error)
	checkpoint(ctx context.Context) (whole bool, err error)
	hasTable(ctx context.Context, tx *Tx, name string) (bool, error)
	// obstacle adds to an error what stands in the way, as far as that can be found out.
	obstacle(err error) error

	// ring tells other processes that a job may have become claimable.
	ring()
	// listen calls wake when others ring or may have, until ctx ends.
	listen(ctx context.Context, wake func())
	// close comes after the last of all the above.
	close() error
}

// standing is what is known of a ledger where a transaction begins.
type standing struct {
	tail, tailAt int64     // the last event's pos and at
	now          time.Time // by the engine's own clock; zero: it has none
}
