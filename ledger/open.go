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
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"

	"jobledger/ledger/failpoint"
	"jobledger/schema"
)

// Open opens the ledger at dsn and creates it where there is none. dsn is the path of a file, taken literally, or
// "sqlite:PATH?sync=normal", where options are:
//
//	sync=full     every acknowledged command survives a power cut (the default)
//	sync=normal   a power cut may lose the last commands, never consistency
//	network=allow open on a network file system in spite of SQLite's warning
//
// Errors: ErrAddress, ErrNotALedger, ErrNewerSchema, ErrStray, ErrBusy, ErrFull, ErrIO, ErrReadOnly, ErrDamaged, and what the file
// system says.
func Open(ctx context.Context, dsn string) (*Store, error) { return open(ctx, dsn, true) }

// OpenExisting is Open for a ledger that must be there: ErrNoLedger if it is not.
func OpenExisting(ctx context.Context, dsn string) (*Store, error) { return open(ctx, dsn, false) }

// oldestSQLite is the first version without the WAL-reset bug, which could corrupt a database with several
// writers (https://sqlite.org/wal.html#walresetbug).
var oldestSQLite = [3]int{3, 51, 3}

func open(ctx context.Context, dsn string, create bool) (s *Store, err error) {
	if OnServer(dsn) {
		return openPostgres(ctx, dsn, create)
	}
	for range openTries {
		if s, err = openFile(ctx, dsn, create); !errors.Is(err, ErrReplaced) {
			break
		}
	}
	return s, err
}

// openTries is how often a ledger that is exchanged just while it is opened is opened anew: nothing has been written yet.
const openTries = 3

func openFile(ctx context.Context, dsn string, create bool) (*Store, error) {
	path, options, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	lockByDescription()

	if err := checkBeside(path, create); err != nil {
		return nil, err
	}
	if err := prepareFile(path, options, create); err != nil {
		return nil, err
	}
	if err := markNew(ctx, path, create); err != nil {
		return nil, withObstacle(path, err)
	}
	if err := checkForeign(ctx, path); err != nil {
		return nil, withObstacle(path, err)
	}
	if err := checkStray(ctx, path); err != nil {
		return nil, err
	}
	s := newStore(dsn)
	f := &file{store: s, path: path}
	s.path, s.sync, s.engine = path, options.sync, f
	var kept *os.File
	defer func() { _ = kept.Close() }()
	err = retryBusy(ctx, time.Now(), openWait, func() (err error) {
		_ = kept.Close() // of the attempt before
		if kept, err = keepName(path); err != nil {
			return err
		}
		if f.info, err = os.Stat(path); err != nil { // before it is opened: where no name is kept, it may be replaced meanwhile
			return err
		}
		failpoint.Hit("connecting")
		if f.writer, err = connect(ctx, writerURL(path, options.sync)); err != nil {
			return f.unlessMoved(err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, withObstacle(path, explain(err)))
	}
	failpoint.Hit("connected")
	if s.version, err = f.setUp(ctx); err != nil {
		_ = f.writer.close()
		return nil, withObstacle(path, explain(err))
	}
	markBeside(path, f.info)
	go s.commitLoop()
	return s, nil
}

// lockByDescription asks for locks that a stray close of the same file elsewhere in the process cannot drop. That is
// refused where a host program has opened SQLite files already; then its rules hold.
var lockByDescription = sync.OnceFunc(func() { _, _ = sqlite.OFDLocking(true) })

const (
	openWait   = 10 * time.Second // for the write lock while many processes start at once
	maxReaders = 4
)

type options struct {
	sync    string
	network bool
}

func parseDSN(dsn string) (path string, o options, err error) {
	o.sync = "full"
	rest, isURL := strings.CutPrefix(dsn, "sqlite:")
	switch {
	case OnServer(dsn):
		return "", o, fmt.Errorf("%w: this is for a ledger in a file, and %s… is one in PostgreSQL, which has its own tools", ErrAddress, strings.SplitAfter(dsn, "://")[0])
	case isURL:
		var query string
		rest, query, _ = strings.Cut(rest, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			return "", o, fmt.Errorf("%w: options of %q: %w", ErrAddress, dsn, err)
		}
		for name, value := range values {
			switch v := strings.Join(value, ","); {
			case name == "sync" && (v == "full" || v == "normal"):
				o.sync = v
			case name == "network" && v == "allow":
				o.network = true
			default:
				return "", o, fmt.Errorf("%w: option %s=%s of %q: the options are sync=full, sync=normal, network=allow", ErrAddress, name, v, dsn)
			}
		}
	}
	if rest == "" || rest == ":memory:" || strings.ContainsRune(rest, 0) {
		return "", o, fmt.Errorf("%w: %q is not the path of a file", ErrAddress, dsn)
	}
	path, err = filepath.Abs(rest)
	return path, o, err
}

// prepareFile refuses what cannot be a ledger by its kind and creates an empty file, readable by its owner only.
func prepareFile(path string, o options, create bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !create:
		return fmt.Errorf("%w at %s", ErrNoLedger, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is %s", ErrNotALedger, path, kindOfFile(info.Mode()))
	case err == nil && info.Size() == 0 && !create:
		return fmt.Errorf("%w at %s: the file is empty", ErrNoLedger, path)
	}
	place := path // which may be a link to another file system
	if err != nil {
		place = filepath.Dir(path)
	}
	if name := networkFileSystem(place); name != "" && !o.network {
		return fmt.Errorf("ledger: %s is on a network file system (%s), where SQLite's locks cannot be trusted; "+
			"keep the ledger on a local disk, or say sqlite:%s?network=allow", path, name, path)
	}
	if err == nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process was first
	}
	if err != nil {
		return err
	}
	failpoint.Hit("made")
	return file.Close()
}

func kindOfFile(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "not a regular file"
}

// checkForeign reads the file's mark and version before anything could be written to it. The connection is immutable: it takes
// no locks and makes no -wal or -shm file beside somebody else's database. The mark of a ledger is in the first
// page ever written, so that it is there even while the rest is still in the -wal file.
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
	var mark, version int
	if err = db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&mark); err == nil {
		err = db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, explain(err))
	}
	if mark != schema.ApplicationID {
		return fmt.Errorf("%w: %s is another program's SQLite database (application_id %#x); it was not touched", ErrNotALedger, path, mark)
	}
	return checkVersion(path, version)
}

func checkVersion(path string, version int) error {
	steps, err := schema.SQLite()
	if err == nil && version > len(steps) {
		err = fmt.Errorf("%w: %s has schema %d, this program knows up to %d; use a newer jobledger", ErrNewerSchema, path, version, len(steps))
	}
	return err
}

// fileURL is the DSN of a SQLite file. A path is escaped as a URL, or ?, # and % in it would open another file.
// Settings are part of the DSN, because the driver may replace a connection after a cancelled statement.
func fileURL(path string, settings url.Values) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: settings.Encode()}
	return u.String()
}

func writerURL(path, sync string) string {
	settings := url.Values{
		"mode": {"rw"},
		"_pragma": {
			"busy_timeout(0)", // its back-off starves writers; Store.begin waits fairly
			"journal_mode(wal)",
			"recursive_triggers(1)", // or OR REPLACE would pass the DELETE guard
			"synchronous(" + sync + ")",
			"temp_store(memory)",
			"trusted_schema(0)",
			"wal_autocheckpoint(1000)",
		},
	}
	return fileURL(path, settings)
}

func readerURL(path string) string {
	return fileURL(path, url.Values{
		"mode":        {"ro"},
		"_query_only": {"1"},
		"_pragma":     {"busy_timeout(5000)", "temp_store(memory)", "trusted_schema(0)"},
	})
}

// vacuumURL is readerURL without query_only, under which VACUUM INTO refuses to write its copy.
func vacuumURL(path string) string {
	return fileURL(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "temp_store(memory)", "trusted_schema(0)"}})
}

// immutableURL is for looking at a file that nobody writes, without locks and without a -wal or -shm beside it.
func immutableURL(path string) string {
	return fileURL(path, url.Values{"mode": {"ro"}, "immutable": {"1"}})
}

// headerURL is immutableURL for a file of which only the header is read: while the -wal file is moved into it, or where
// a crash has cut that off, the header speaks of pages that are not there yet, and SQLite would call that damage.
func headerURL(path string) string {
	return fileURL(path, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"writable_schema(1)"}})
}

// setUp checks the engine's version and brings the schema up to date, in one transaction that many processes may
// attempt at once.
func (f *file) setUp(ctx context.Context) (newest int, err error) {
	conn := f.writer.connection.(*sqliteConnection).conn
	var version string
	if err := conn.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return 0, explain(err)
	}
	var v [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || older(v, oldestSQLite) {
		return 0, fmt.Errorf("ledger: SQLite %s can damage a database with several writers; at least %v is needed", version, oldestSQLite)
	}
	steps, err := schema.SQLite()
	if err != nil {
		return 0, err
	}
	return len(steps), retryBusy(ctx, time.Now(), openWait, func() error {
		at, err := f.schemaVersion(ctx, conn)
		// That was read with a lock on the file, which a connection in WAL mode keeps: if the file still has its name,
		// nobody can exchange it any more. Before, it may have been; then the -wal file is the other one's.
		if err = f.unlessMoved(err); err != nil || at == len(steps) {
			return err
		}
		return f.migrate(ctx, conn, steps)
	})
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
func (f *file) schemaVersion(ctx context.Context, conn *sql.Conn) (int, error) {
	var at int
	if err := conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&at); err != nil {
		return 0, explain(err)
	}
	return at, checkVersion(f.path, at)
}

func (f *file) migrate(ctx context.Context, conn *sql.Conn, steps []schema.Migration) (err error) {
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
	return err
}
