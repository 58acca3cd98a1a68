package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/place"
	"jobledger/schema"
)

// Inspecting a ledger without changing it: Open would migrate it, and a connection that is not immutable
// makes a -wal and a -shm file, or joins those that exist.

// Facts describe a ledger's file, apart from its content.
type Facts struct {
	SQLite   string // the version of the library in this program
	Schema   int    // the version of the file's schema
	Newest   int    // the version that this program would migrate it to
	PageSize int64  // bytes
	WALMode  bool   // the file says so itself; the copy that a backup makes does not
	Backlog  int64  // bytes in the -wal file that no checkpoint has moved yet
	FileOnly bool   // the snapshot is of the file without its -wal file: there is none, or it was left out
}

// Inspection is an open snapshot of a ledger that was not opened for writing. Close it.
type Inspection struct {
	Engine  *Engine
	Session *engine.Session
	Head    engine.Head
	Facts   Facts
	temp    string // the folder with the copy that is read; "": it is the ledger itself
}

// Inspect begins a snapshot of the ledger at dsn. It migrates nothing, writes nothing and leaves no file
// behind, so it works on read-only media, except that SQLite creates a missing -shm next to a -wal. If it
// cannot, a copy is read. Errors: as those of Open without create; ErrForeignSidecar. A network file system
// and a second name are not errors here.
func Inspect(ctx context.Context, dsn string) (*Inspection, error) {
	path, err := inspectable(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := checkOwnSidecars(ctx, path); err != nil {
		return nil, err
	}
	wal, err := walOf(path)
	if err != nil {
		return nil, err
	}
	i, err := inspect(ctx, path, wal == nil)
	if err == nil || wal == nil || !unwritable(err) {
		return i, err
	}
	if _, shmErr := os.Lstat(path + "-shm"); !errors.Is(shmErr, fs.ErrNotExist) {
		return nil, err // another process may write
	}
	if copied, copyErr := inspectCopy(ctx, path); copyErr == nil {
		return copied, nil
	}
	return nil, err
}

// unwritable reports whether err may be that nothing can be written next to a ledger.
func unwritable(err error) bool {
	return errors.Is(err, engine.ErrIO) || errors.Is(err, fs.ErrPermission) || errors.Is(err, engine.ErrReadOnly)
}

// inspectCopy inspects a temporary copy of a ledger and its -wal file.
func inspectCopy(ctx context.Context, path string) (i *Inspection, err error) {
	temp, err := os.MkdirTemp("", "jobledger-")
	if err != nil {
		return nil, err
	}
	to := filepath.Join(temp, "ledger.db")
	if err = checkRoom(temp, path); err == nil {
		err = copyWithWAL(path, to)
	}
	if err == nil {
		i, err = inspect(ctx, to, false)
	}
	if err != nil {
		_ = os.RemoveAll(temp)
		return nil, err
	}
	i.temp = temp
	return i, nil
}

// checkOwnSidecars returns ErrForeignSidecar if a -wal or -shm file next to the database at path is that of
// another one. path has no links.
func checkOwnSidecars(ctx context.Context, path string) error {
	for _, suffix := range place.Suffixes {
		if !place.BelongsTo(path+suffix, path) {
			return fmt.Errorf("%w: %s belongs to the file that was %s before this one",
				engine.ErrForeignSidecar, path+suffix, path)
		}
	}
	return checkStrayWAL(ctx, path)
}

// InspectFileOnly is Inspect for the file without its -wal file. While other processes write, that is not a
// consistent state: expect errors, and believe a problem only if it is found twice.
func InspectFileOnly(ctx context.Context, dsn string) (*Inspection, error) {
	path, err := inspectable(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return inspect(ctx, path, true)
}

// inspectable returns the path of the ledger at dsn, without links, if its first page is that of a ledger.
func inspectable(ctx context.Context, dsn string) (string, error) {
	path, o, err := parseDSN(dsn)
	if err != nil {
		return "", err
	}
	lockByDescription()
	o.network = true
	return inspectableAt(ctx, path, o)
}

func inspectableAt(ctx context.Context, path string, o options) (_ string, err error) {
	if err := prepareFile(path, o, false); err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // the sidecar files are next to the file itself
		return "", err
	}
	return path, withCause(path, checkForeign(ctx, path))
}

func inspect(ctx context.Context, path string, fileOnly bool) (_ *Inspection, err error) {
	settings := url.Values{
		"mode":        {"ro"},
		"_query_only": {"1"},
		"_pragma":     {"busy_timeout(5000)", "temp_store(memory)", "trusted_schema(0)"},
	}
	if fileOnly {
		settings.Set("immutable", "1")
	}
	c, err := open(ctx, fileURL(path, settings))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, withCause(path, explain(err)))
	}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	i := &Inspection{
		Engine:  &Engine{path: path, info: engine.Info{Path: path}},
		Session: &engine.Session{Connection: c},
	}
	if i.Facts, err = c.facts(ctx, fileOnly); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, withCause(path, err))
	}
	if i.Engine.opened, err = os.Stat(path); err != nil {
		return nil, err
	}
	if i.Head, err = i.Engine.BeginSnapshot(ctx, i.Session); err != nil {
		return nil, err
	}
	return i, nil
}

// Close ends the snapshot.
func (i *Inspection) Close() {
	_, _ = i.Session.Exec(`ROLLBACK`)
	_ = i.Session.Close()
	if i.temp != "" {
		_ = os.RemoveAll(i.temp)
	}
}

// facts asks SQLite, outside of any transaction.
func (c *connection) facts(ctx context.Context, fileOnly bool) (f Facts, err error) {
	f.FileOnly = fileOnly
	var id, format int
	const header = `SELECT sqlite_version(), application_id, user_version, page_size,
    coalesce(unicode(substr(data, 19, 1)), 0)
FROM pragma_application_id, pragma_user_version, pragma_page_size, sqlite_dbpage WHERE pgno = 1`
	err = c.conn.QueryRowContext(ctx, header).Scan(&f.SQLite, &id, &f.Schema, &f.PageSize, &format)
	if err != nil {
		return f, explain(err)
	}
	if id != schema.ApplicationID { // the file without its -wal file had the right one
		return f, fmt.Errorf("%w: the -wal file makes it another program's database (application_id %#x)",
			engine.ErrForeignSidecar, id)
	}
	f.WALMode = format == walFormat
	steps, err := schema.SQLite()
	f.Newest = len(steps)
	if err != nil || fileOnly {
		return f, err
	}
	var busy, frames, moved int64
	err = c.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &frames, &moved)
	f.Backlog = max(0, frames-moved) * f.PageSize
	if err = explain(err); errors.Is(err, engine.ErrReadOnly) { // not even that is asked on a read-only disk
		f.Backlog, err = 0, nil
	}
	return f, err
}

// walFormat is byte 19 of a SQLite file in WAL mode; other files have 1 there.
const walFormat = 2

// walOf describes the -wal file of the database at path, which has no links; nil if there is none, or if it
// is empty.
func walOf(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() == 0:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return info, nil
}

// checkStrayWAL refuses a database that is not in WAL mode and yet has a -wal file. SQLite would read that
// file, but it belongs to another database that this one replaced: a copy over a ledger whose last process
// was killed.
func checkStrayWAL(ctx context.Context, path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	before, err := walOf(path)
	if err != nil || before == nil {
		return err
	}
	db, err := sql.Open("sqlite", immutableURL(path))
	if err != nil {
		return err
	}
	defer db.Close()
	var format, version int
	const header = `SELECT unicode(substr(data, 19, 1)), user_version FROM sqlite_dbpage, pragma_user_version
WHERE pgno = 1`
	err = db.QueryRowContext(ctx, header).Scan(&format, &version)
	if err != nil || format == walFormat {
		return nil // other checks report what is wrong, if anything is
	}
	if version == 0 {
		return nil // its own -wal file: the power failed while it was made, and its schema is in there
	}
	after, err := walOf(path) // another process may have ended WAL mode meanwhile
	if err != nil || after == nil || !os.SameFile(before, after) {
		return err
	}
	return fmt.Errorf("%w: %s-wal is left of another file that stood at this place", engine.ErrForeignSidecar,
		path)
}
