package sqlite

import (
	"context"
	"net/url"
	"os"

	"modernc.org/sqlite"

	"jobledger/ledger/internal/sqlite/writequeue"
)

// What tests of package ledger need to make rare things happen on purpose.

// OnCommit registers a hook for the commits of the writer; a result other than 0 makes COMMIT fail.
func (f *Engine) OnCommit(hook func() int32) error {
	return f.writer.Connection.(*connection).conn.Raw(func(conn any) error {
		conn.(sqlite.HookRegisterer).RegisterCommitHook(hook)
		return nil
	})
}

// HoldWriteQueue acquires the lock of the queue at path and keeps it until the process ends.
func HoldWriteQueue(path string) bool {
	return writequeue.Hold(path)
}

// SetUpLate does what Open does with the ledger at path, and calls meanwhile when SQLite has opened the file
// but not asked for a lock on it.
func SetUpLate(ctx context.Context, path string, meanwhile func()) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	w, err := connect(ctx, fileURL(path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)"}}))
	if err != nil {
		return err
	}
	defer w.Close()
	meanwhile()
	u, err := url.Parse(writerURL(path, "full"))
	if err != nil {
		return err
	}
	for _, pragma := range u.Query()["_pragma"] {
		if _, err := w.Connection.(*connection).conn.ExecContext(ctx, `PRAGMA `+pragma); err != nil {
			return err
		}
	}
	_, err = (&Engine{path: path, opened: info, writer: w}).setUp(ctx)
	return err
}

// LockByDescription does what the first Open does, for a test program that opens files in other ways before.
func LockByDescription() { lockByDescription() }
