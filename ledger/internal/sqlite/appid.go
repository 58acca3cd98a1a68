package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/place"
	"jobledger/schema"
)

// writeApplicationID writes the application id of a ledger into the database at path if that is empty, and
// lets its file shrink (auto_vacuum), which can be chosen only now. It has a transaction of its own, so that
// the id is in the first page ever written and the file alone can be recognised. If a crash cut that
// transaction off, SQLite rolls it back first. create says whether an empty database may become a ledger;
// ErrNoLedger if not.
func writeApplicationID(ctx context.Context, path string, create bool) error {
	if !startsEmpty(path) {
		return nil
	}
	err := retryBusy(ctx, time.Now(), openWait, func() error {
		settings := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)", "synchronous(full)"}}
		c, err := open(ctx, fileURL(path, settings))
		if err != nil {
			return err
		}
		defer c.Close()
		// The pragma takes the write lock. BEGIN IMMEDIATE would make the first page before it, without
		// auto_vacuum.
		if _, err := c.conn.ExecContext(ctx, `BEGIN; PRAGMA auto_vacuum = INCREMENTAL`); err != nil {
			return err
		}
		defer func() { // it fails after the COMMIT
			_, _ = c.conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		}()
		var objects, id, version int
		const held = `SELECT (SELECT count(*) FROM sqlite_schema), application_id, user_version
FROM pragma_application_id, pragma_user_version`
		err = c.conn.QueryRowContext(ctx, held).Scan(&objects, &id, &version)
		if err != nil || objects != 0 || id != 0 || version != 0 {
			return err // the checks after this one say what it is
		}
		if !create {
			return fmt.Errorf("%w at %s: the file is empty", engine.ErrNoLedger, path)
		}
		setID := fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID)
		if _, err := c.conn.ExecContext(ctx, setID); err != nil {
			return err
		}
		_, err = c.conn.ExecContext(ctx, `COMMIT`)
		return err
	})
	if err != nil {
		return fmt.Errorf("open %s: %w", path, explain(err))
	}
	return nil
}

// startsEmpty reports whether the database at path is empty, or was empty when the transaction began whose
// rollback journal is left.
func startsEmpty(path string) bool {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return err == nil
	}
	journal, err := os.Open(place.RealPath(path) + "-journal") // on which SQLite has no locks
	if err != nil {
		return false
	}
	defer journal.Close()
	var header [20]byte // https://sqlite.org/fileformat2.html#the_rollback_journal
	_, err = io.ReadFull(journal, header[:])
	return err == nil && bytes.HasPrefix(header[:], []byte(journalMagic)) &&
		binary.BigEndian.Uint32(header[16:]) == 0
}

const journalMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

// checkForeign reads the application id and the schema version before anything could be written to the file.
// The connection is immutable: it takes no locks and makes no -wal or -shm file next to a foreign database. A
// ledger has its application id in the first page ever written, so it is there even while the rest is still
// in the -wal file.
func checkForeign(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		return err
	}
	db, err := sql.Open("sqlite", headerURL(path))
	if err != nil {
		return err
	}
	defer db.Close()
	var id, version int
	if err = db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err == nil {
		err = db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, explain(err))
	}
	if id != schema.ApplicationID {
		return fmt.Errorf("%w: %s is another program's SQLite database (application_id %#x); it was not touched",
			engine.ErrNotALedger, path, id)
	}
	return checkVersion(path, version)
}
