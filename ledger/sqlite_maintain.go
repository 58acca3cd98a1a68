package ledger

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"

	"jobledger/ledger/failpoint"
)

// Vacuum writes a compacted, consistent copy of the ledger to path, which must not exist or be empty, while others
// write, and returns the pos of the last event in it, read back from the copy. SQLite does not make the copy
// durable: sync the file before relying on it. ErrEngine with PostgreSQL.
func (s *Store) Vacuum(ctx context.Context, path string) (tail int64, err error) {
	return s.engine.vacuum(ctx, path)
}

func (f *file) vacuum(ctx context.Context, path string) (tail int64, err error) {
	if path, err = filepath.Abs(path); err != nil { // also so that no name is taken for a URI
		return 0, err
	}
	db, err := sql.Open("sqlite", vacuumURL(f.path))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return 0, explain(err)
	}
	failpoint.Hit("vacuumed")
	if err := checkForeign(ctx, path); err != nil {
		return 0, err
	}
	written, err := sql.Open("sqlite", immutableURL(path))
	if err != nil {
		return 0, err
	}
	defer written.Close()
	err = written.QueryRowContext(ctx, `SELECT coalesce(max(pos), 0) FROM events`).Scan(&tail)
	return tail, explain(err)
}

// Checkpoint moves what the -wal file holds into the ledger's file and empties the former; whole is false if a reader
// kept it from doing so for as long as it waited. SQLite does this by itself now and then; after an erasure, the
// bytes are gone from the disk's files only then. With PostgreSQL it frees the space of erased bodies for others.
func (s *Store) Checkpoint(ctx context.Context) (whole bool, err error) {
	return s.engine.checkpoint(ctx)
}

func (f *file) checkpoint(ctx context.Context) (whole bool, err error) {
	if err := f.same(); err != nil {
		return false, err
	}
	db, err := sql.Open("sqlite", fileURL(f.path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(2000)"}}))
	if err != nil {
		return false, err
	}
	defer db.Close()
	failpoint.Hit("checkpoint")
	var busy, log, moved int
	err = db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &log, &moved)
	failpoint.Hit("checkpointed")
	return err == nil && busy == 0, explain(err)
}
