package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
)

// Compact writes a compacted copy of the locked ledger to the file at to, which must not exist or be empty.
// The copy may shrink later (auto_vacuum). Like Vacuum it does not make the copy durable. It changes nothing
// in the ledger. Errors: ErrEngine where the system is not Linux: the lock would end with the first
// connection that is closed.
func (s *ExclusiveLock) Compact(ctx context.Context, to string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: only on Linux does a lock keep all others out while a ledger is copied",
			engine.ErrEngine)
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", immutableURL(s.path)) // the lock keeps out every other connection
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the pragma is for this connection
	var mode int
	if err := db.QueryRowContext(ctx, `PRAGMA auto_vacuum`).Scan(&mode); err != nil {
		return explain(err)
	}
	if mode == 0 { // otherwise the copy has the mode of the ledger
		if _, err := db.ExecContext(ctx, `PRAGMA auto_vacuum = INCREMENTAL`); err != nil {
			return explain(err)
		}
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return explain(err)
	}
	failpoint.Hit("compact-written")
	return nil
}
