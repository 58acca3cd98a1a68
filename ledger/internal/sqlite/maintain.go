package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
)

// Vacuum implements engine.Engine.
func (f *Engine) Vacuum(ctx context.Context, path string) (tail int64, err error) {
	return f.vacuumFrom(ctx, vacuumURL(f.path), path)
}

// vacuumFrom is Vacuum of the ledger at a URL. It reads the tail back from the copy.
func (f *Engine) vacuumFrom(ctx context.Context, source, path string) (tail int64, err error) {
	if path, err = filepath.Abs(path); err != nil { // which cannot be mistaken for a URI either
		return 0, err
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return 0, explain(err)
	}
	failpoint.Hit("vacuumed")
	_ = f.Sync() // the copy should have nothing that the ledger may lose
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

// Checkpoint empties the -wal file.
func (f *Engine) Checkpoint(ctx context.Context) (whole bool, err error) {
	db, err := f.openToCheckpoint(2000)
	if err != nil {
		return false, err
	}
	defer db.Close()
	failpoint.Hit("checkpoint")
	busy, _, _, err := f.checkpoint(ctx, db, "TRUNCATE")
	failpoint.Hit("checkpointed")
	return err == nil && busy == 0, explain(err)
}

// MoveWAL moves pages of the -wal file into the ledger's file without keeping a writer waiting. The next
// writer then begins the -wal file again, where it would have moved these pages itself.
func (f *Engine) MoveWAL(ctx context.Context) error {
	db, err := f.openToCheckpoint(0)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, _, _, err = f.checkpoint(ctx, db, "PASSIVE"); isBusy(err) {
		return nil
	}
	return explain(err)
}

// openToCheckpoint opens a connection of its own, which waits for locks for so many milliseconds.
func (f *Engine) openToCheckpoint(wait int) (*sql.DB, error) {
	if err := f.CheckReplaced(); err != nil {
		return nil, err
	}
	return sql.Open("sqlite", fileURL(f.path, url.Values{"mode": {"rw"},
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", wait)}}))
}

// checkpoint runs one in the given mode. Late syncs learn of a sync of the -wal file that fails in it.
func (f *Engine) checkpoint(ctx context.Context, db *sql.DB, mode string) (busy, log, moved int, err error) {
	if err := f.Sync(); err != nil { // what was lost must not be moved
		if err := f.rewriteLocked(ctx, db); err != nil {
			return 0, 0, 0, err
		}
	}
	err = db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(`+mode+`)`).Scan(&busy, &log, &moved)
	if f.late != nil {
		f.late.Learn(err)
	}
	return busy, log, moved, err
}

// TrimWAL empties a -wal file that is larger than walLimit, unless a reader or a writer is in the way. It
// waits for none of them. Truncating takes the write lock, so all pages are moved before, without it.
func (f *Engine) TrimWAL(ctx context.Context) (trimmed bool, err error) {
	if info, err := os.Stat(f.path + "-wal"); err != nil || info.Size() <= walLimit {
		return false, nil // also if it cannot be read: other commands say so
	}
	db, err := f.openToCheckpoint(0)
	if err != nil {
		return false, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, mode := range []string{"PASSIVE", "TRUNCATE"} {
		busy, log, moved, err := f.checkpoint(ctx, db, mode)
		if isBusy(err) || err == nil && (busy != 0 || log != moved) {
			return false, nil
		}
		if err != nil {
			return false, explain(err)
		}
	}
	return true, nil
}

// Copy writes a compacted, consistent copy of the ledger at from, which may be in use, to the file at to,
// which must not exist or be empty. Like Vacuum it does not make the copy durable. It changes nothing at
// from.
func Copy(ctx context.Context, from, to string) error {
	path, err := inspectable(ctx, from)
	if err != nil {
		return err
	}
	if to, err = filepath.Abs(to); err != nil {
		return err
	}
	if err := checkStrayWAL(ctx, path); err != nil {
		return err
	}
	wal, err := walOf(path)
	if err != nil {
		return err
	}
	source := vacuumURL(path)
	if wal == nil {
		source = immutableURL(path) // or SQLite would make a -wal and a -shm file
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	return explain(err)
}

// FreePages shrinks the file by free pages, if the file was made for it: see auto_vacuum in appid.go.
func (f *Engine) FreePages(ctx context.Context, s *engine.Session, most int) (left int64, err error) {
	mode, err := s.Int(ctx, `PRAGMA auto_vacuum`)
	if err != nil || mode != incremental {
		return 0, err
	}
	rows, err := s.Query(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, most))
	if err != nil {
		return 0, err
	}
	for rows.Next() { // a page each
	}
	err = rows.Err()
	_ = rows.Close()
	if err != nil {
		return 0, err
	}
	return s.Int(ctx, `PRAGMA freelist_count`)
}

// incremental is the mode of auto_vacuum in which a file shrinks when it is asked to.
const incremental = 2
