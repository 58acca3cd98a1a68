package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// oldestSQLite is the first version without the WAL-reset bug, which could corrupt a database with several
// writers (https://sqlite.org/wal.html#walresetbug).
var oldestSQLite = [3]int{3, 51, 3}

// checkVersion returns ErrNewerSchema for a version that this program does not know, and ErrDamaged for an
// impossible one.
func checkVersion(path string, version int) error {
	steps, err := schema.SQLite()
	switch {
	case err != nil:
	case version < 0:
		err = fmt.Errorf("%w: the header of %s says schema %d (user_version); schemas count from 1",
			engine.ErrDamaged, path, version)
	case version > len(steps):
		err = fmt.Errorf("%w: %s has schema %d, this program knows up to %d; use a newer jobledger",
			engine.ErrNewerSchema, path, version, len(steps))
	}
	return err
}

// setUp checks the engine's version and brings the schema up to date, in one transaction that many processes
// may attempt at once.
func (f *Engine) setUp(ctx context.Context) (newest int, err error) {
	conn := f.writer.Connection.(*connection).conn
	var version string
	if err := conn.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return 0, explain(err)
	}
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || older(v, oldestSQLite) {
		return 0, fmt.Errorf("ledger: SQLite %s can damage a database with several writers; at least %v is needed",
			version, oldestSQLite)
	}
	steps, err := schema.SQLite()
	if err != nil {
		return 0, err
	}
	err = retryBusy(ctx, time.Now(), openWait, func() error {
		at, err := f.schemaVersion(ctx, conn)
		// The read took a lock on the file, which a connection in WAL mode keeps: if the file still has its name,
		// it cannot be replaced any more. It may have been replaced before; then the -wal file belongs to the other
		// one.
		if err = f.replacedOr(err); err != nil || at == len(steps) {
			return err
		}
		return f.migrate(ctx, conn, steps)
	})
	if err != nil {
		return 0, err
	}
	diff, err := schemaDiff(ctx, f.writer, len(steps))
	f.info.Altered = engine.Altered(diff)
	return len(steps), err
}

func older(v, than [3]int) bool {
	for i := range v {
		if v[i] != than[i] {
			return v[i] < than[i]
		}
	}
	return false
}

// schemaVersion returns the version of the file's schema; ErrNewerSchema if this program does not know it.
func (f *Engine) schemaVersion(ctx context.Context, conn *sql.Conn) (int, error) {
	var at int
	if err := conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&at); err != nil {
		return 0, explain(err)
	}
	return at, checkVersion(f.path, at)
}

// checkObjects returns ErrDamaged unless the file has the objects of the version that its header names: a
// migration counts on them.
func (f *Engine) checkObjects(ctx context.Context, version, newest int) error {
	diff, err := schemaDiff(ctx, f.writer, version)
	if err != nil {
		return err
	}
	altered := engine.AlteredText(diff)
	if version == 0 && altered == "" { // whatever it has did not come from this program
		objects, err := f.writer.Int(ctx, `SELECT count(*) FROM sqlite_schema`)
		if err != nil || objects == 0 {
			return err
		}
		altered = fmt.Sprintf("it has %d tables, indexes and views", objects)
	}
	if altered == "" {
		return nil
	}
	for other := newest; other > 0; other-- {
		is, err := isSchemaOf(ctx, f.writer, other)
		if err != nil {
			return err
		}
		if is {
			return fmt.Errorf(
				"%w: the header of %s says schema %d (user_version), but its tables are those of schema %d; "+
					"'PRAGMA user_version = %d' in a SQLite shell puts that right; nothing was changed",
				engine.ErrDamaged, f.path, version, other, other)
		}
	}
	return fmt.Errorf("%w: %s was not brought from schema %d to %d, because it is not as schema %d is: %s",
		engine.ErrDamaged, f.path, version, newest, version, altered)
}

// migrate runs the missing migrations in one transaction.
func (f *Engine) migrate(ctx context.Context, conn *sql.Conn, steps []schema.Migration) (err error) {
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
		}
	}()
	at, err := f.schemaVersion(ctx, conn) // another process may have been first
	if err != nil {
		return err
	}
	if err := f.checkObjects(ctx, at, len(steps)); err != nil {
		return err
	}
	if err := markWAL(ctx, conn); err != nil {
		return err
	}
	for _, step := range steps[min(at, len(steps)):] {
		for _, statement := range failpoint.Statements(step.SQL) {
			failpoint.Hit("migrate")
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("migration %04d_%s: %w", step.Version, step.Name, explain(err))
			}
		}
		failpoint.Hit("migrated")
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, step.Version)); err != nil {
			return err
		}
	}
	failpoint.Hit("migrations")
	_, err = conn.ExecContext(ctx, `COMMIT`)
	f.info.Created = err == nil && at == 0
	return err
}

// markWAL writes into the header of the database, in the transaction of conn, that it is in WAL mode. SQLite
// has written that before, with one exception: the power failed while it did, its rollback journal takes the
// header back, and the -wal file is there already. Then SQLite works in WAL mode because of that file alone,
// and checkStrayWAL would take the file for one of another database.
func markWAL(ctx context.Context, conn *sql.Conn) error {
	var page []byte
	err := conn.QueryRowContext(ctx, `SELECT data FROM sqlite_dbpage WHERE pgno = 1`).Scan(&page)
	if err != nil || len(page) < 20 || page[19] == walFormat {
		return err
	}
	page[18], page[19] = walFormat, walFormat // https://sqlite.org/fileformat2.html#file_format_version_numbers
	_, err = conn.ExecContext(ctx, `UPDATE sqlite_dbpage SET data = ? WHERE pgno = 1`, page)
	return err
}
