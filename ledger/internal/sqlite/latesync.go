package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/sqlite/walsync"
)

// maxFrames is how many frames the -wal file has before they are moved into the database.
const maxFrames = 1000

// Late implements engine.LateSyncer.
func (f *Engine) Late() bool { return f.late != nil }

// Sync implements engine.LateSyncer.
func (f *Engine) Sync() error {
	if f.late == nil || f.late.Durable() {
		return nil
	}
	failpoint.Hit("sync")
	return f.late.Sync()
}

// startLateSyncs has the writer commit without syncs, unless there are to be none at all, or late ones are
// not possible.
func (f *Engine) startLateSyncs(ctx context.Context) error {
	if f.info.Sync != "full" {
		return nil
	}
	c := f.writer.Connection.(*connection)
	err := c.conn.Raw(func(conn any) error {
		f.late = walsync.New(conn)
		return nil
	})
	setting := "PRAGMA synchronous = NORMAL"
	if f.late == nil {
		setting = fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", maxFrames)
	}
	if err == nil {
		_, err = c.conn.ExecContext(ctx, setting)
	}
	return err
}

// moveFrames is the checkpoint that SQLite would make after a commit. Errors of it are none of the commit's,
// unless the -wal file could not be synced.
func (f *Engine) moveFrames() {
	if all, moved := f.late.Frames(); all < maxFrames || all == moved {
		return
	}
	f.late.Checkpoint(func() error {
		rows, row, err := f.writer.Select(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`, nil)
		if err == nil {
			err = rows.Next(row)
			_ = rows.Close()
		}
		return err
	})
}

// rewriteLocked writes the -wal file again under the write lock of a connection of db.
func (f *Engine) rewriteLocked(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err = f.late.Rewrite()
	_, rollbackErr := conn.ExecContext(ctx, `ROLLBACK`)
	return cmp.Or(err, rollbackErr)
}

// closeLateSync is for before the writer is closed, which may make a checkpoint.
func (f *Engine) closeLateSync() {
	if f.late == nil {
		return
	}
	if f.late.Broken() {
		if _, err := f.writer.Exec(`BEGIN IMMEDIATE`); err == nil {
			_ = f.late.Rewrite()
			_, _ = f.writer.Exec(`ROLLBACK`)
		}
	}
	f.late.Close()
}
