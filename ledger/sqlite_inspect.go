package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"jobledger/schema"
)

// Looking at a ledger without touching it. Open would migrate it, and any connection that is not immutable would make
// a -wal and a -shm file beside it, or take its share in those that are there.

// Facts are what SQLite knows of a ledger's file, apart from what it holds.
type Facts struct {
	SQLite   string // the version of the library in this program
	Schema   int    // the version of the file's schema
	Newest   int    // the version of the schema that this program would make of it
	PageSize int64  // bytes
	WALMode  bool   // the file says so itself; the copy that a backup makes does not
	Backlog  int64  // bytes in the -wal file that have not been moved into the ledger's file
	Alone    bool   // the snapshot is of the file by itself: there is no -wal file, or it was left out
}

// Look runs fn on one snapshot of the ledger at dsn. It migrates nothing, writes nothing and leaves nothing behind, so
// that it also does where nothing may be written; only to a -wal file without its -shm, SQLite makes that. fn must not write. Errors: as OpenExisting's; ErrStray. A network
// file system is no error here.
func Look(ctx context.Context, dsn string, fn func(*Tx, Facts) error) error {
	path, err := lookable(ctx, dsn)
	if err != nil {
		return err
	}
	for _, suffix := range besideSuffixes {
		if !belongs(path+suffix, path) {
			return fmt.Errorf("%w: %s belongs to the file that was %s before this one", ErrStray, path+suffix, path)
		}
	}
	if err := checkStray(ctx, path); err != nil {
		return err
	}
	wal, err := walOf(path)
	if err != nil {
		return err
	}
	return look(ctx, path, wal == nil, fn)
}

// LookAlone is Look at the file by itself, without what its -wal file holds. While others write, that is no
// consistent state: expect errors, and believe no difference that is not there a second time.
func LookAlone(ctx context.Context, dsn string, fn func(*Tx, Facts) error) error {
	path, err := lookable(ctx, dsn)
	if err != nil {
		return err
	}
	return look(ctx, path, true, fn)
}

// lookable returns the path of the ledger at dsn, if it is one as far as its first page says.
func lookable(ctx context.Context, dsn string) (string, error) {
	path, o, err := parseDSN(dsn)
	if err != nil {
		return "", err
	}
	lockByDescription()
	o.network = true
	if err := prepareFile(path, o, false); err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // SQLite's side files stand beside the file itself
		return "", err
	}
	return path, withObstacle(path, checkForeign(ctx, path))
}

func look(ctx context.Context, path string, alone bool, fn func(*Tx, Facts) error) error {
	settings := url.Values{"mode": {"ro"}, "_query_only": {"1"}, "_pragma": {"busy_timeout(5000)", "temp_store(memory)", "trusted_schema(0)"}}
	if alone {
		settings.Set("immutable", "1")
	}
	c, err := connectSQLite(ctx, fileURL(path, settings))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, withObstacle(path, explain(err)))
	}
	defer c.close()
	facts, err := c.facts(ctx, alone)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, withObstacle(path, err))
	}
	f := &file{path: path}
	if f.info, err = os.Stat(path); err != nil {
		return err
	}
	s := &session{connection: c}
	at, err := f.look(ctx, s)
	if err != nil {
		return err
	}
	tx := newTx(&Store{path: path, engine: f}, s, at)
	tx.readOnly = true
	err = fn(tx, facts)
	_, _ = s.exec(`ROLLBACK`)
	return err
}

// facts asks SQLite, outside of a transaction.
func (c *sqliteConnection) facts(ctx context.Context, alone bool) (f Facts, err error) {
	f.Alone = alone
	var mark, format int
	err = c.conn.QueryRowContext(ctx, `SELECT sqlite_version(), application_id, user_version, page_size, unicode(substr(data, 19, 1))
FROM pragma_application_id, pragma_user_version, pragma_page_size, sqlite_dbpage WHERE pgno = 1`).Scan(&f.SQLite, &mark, &f.Schema, &f.PageSize, &format)
	if err != nil {
		return f, explain(err)
	}
	if mark != schema.ApplicationID { // the file by itself had another one
		return f, fmt.Errorf("%w: the -wal file makes it another program's database (application_id %#x)", ErrStray, mark)
	}
	f.WALMode = format == walFormat
	steps, err := schema.SQLite()
	f.Newest = len(steps)
	if err != nil || alone {
		return f, err
	}
	var busy, frames, moved int64
	err = c.conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(NOOP)`).Scan(&busy, &frames, &moved)
	f.Backlog = max(0, frames-moved) * f.PageSize
	return f, explain(err)
}

// walFormat is byte 19 of a SQLite file in WAL mode; it is 1 in any other.
const walFormat = 2

// walOf returns what the system says of the -wal file of the database at path, whose links are resolved; nil if there
// is none, or nothing in it.
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

// checkStray refuses a database that is not in WAL mode and has a -wal file all the same. SQLite would take what
// stands there for its own, but it is of another file, in whose place this one was put: a copy over a ledger whose
// last process was killed.
func checkStray(ctx context.Context, path string) error {
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
	err = db.QueryRowContext(ctx, `SELECT unicode(substr(data, 19, 1)), user_version FROM sqlite_dbpage, pragma_user_version WHERE pgno = 1`).Scan(&format, &version)
	if err != nil || format == walFormat {
		return nil // what is wrong with it, if anything, others say
	}
	if version == 0 {
		return nil // its own: the power failed while it was made, and its schema is in the -wal file
	}
	after, err := walOf(path) // the file was read between two looks: somebody may just have put an end to WAL mode
	if err != nil || after == nil || !os.SameFile(before, after) {
		return err
	}
	return fmt.Errorf("%w: %s-wal is left of another file that stood at this place", ErrStray, path)
}
