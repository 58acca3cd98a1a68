package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver of the ledger, which must be that of the program too

	"jobledger/ledger"
)

// Open returns a pool for the program's own transactions on the SQLite file of the ledger: durable, waiting
// for other writers, and each transaction a writing one from its beginning. Close it when done. A program
// that opens the file itself must use the same library, modernc.org/sqlite: another one in the same process
// takes the locks of this one away. With PostgreSQL, open a pool as always.
func Open(ctx context.Context, store *ledger.Store) (*sql.DB, error) {
	if ledger.IsServerAddress(store.DSN()) {
		return nil, fmt.Errorf("inbox: %s is on a server: open a pool of that", store.Path())
	}
	address := url.URL{Scheme: "file", Opaque: (&url.URL{Path: store.Path()}).EscapedPath(),
		RawQuery: "mode=rw&_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=synchronous(full)" +
			"&_pragma=foreign_keys(on)"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("inbox: %w", err)
	}
	return db, nil
}
