package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/doorbell"
	"jobledger/ledger/internal/sqlite/walsync"
	"jobledger/ledger/internal/sqlite/writequeue"
)

// Engine is a ledger in one SQLite file on a local disk.
type Engine struct {
	path    string
	info    engine.Info
	opened  os.FileInfo // of the file that was opened, to notice another one in its place
	writer  *engine.Session
	queue   writequeue.Queue
	late    *walsync.File // nil: SQLite syncs commits
	ringer  doorbell.Ringer
	version versionReader // of Listen; kept, because SQLite keeps the descriptor of a closed connection
}

// Info implements engine.Engine.
func (f *Engine) Info() engine.Info { return f.info }

// Begin waits in the write queue where other processes compete for the lock.
func (f *Engine) Begin(ctx context.Context, o engine.BeginOptions) (*engine.Session, engine.Head, error) {
	immediate := func() error {
		_, err := f.writer.Exec(`BEGIN IMMEDIATE`)
		return err
	}
	failpoint.Hit("begin")
	var err error
	contended := f.queue.Contended()
	if !contended {
		err = immediate()
		contended = isBusy(err) && !o.Exclusive
	}
	if contended {
		f.queue.Acquire(ctx, f.path, o.LockWait-time.Since(o.Since), isBusy(err))
	}
	if contended || isBusy(err) {
		err = retryBusy(ctx, o.Since, o.LockWait, immediate)
	}
	if err != nil {
		f.queue.Release()
		return nil, engine.Head{}, err
	}
	failpoint.Hit("begun")
	var at engine.Head
	if err = f.CheckReplaced(); err == nil && f.late.Broken() {
		err = f.late.Rewrite()
	}
	if err == nil {
		at.Tail, at.TailAt, err = f.writer.Tail()
	}
	if err != nil {
		_ = f.Rollback()
	}
	return f.writer, at, err
}

// Commit implements engine.Engine. Notifications are sent apart from it.
func (f *Engine) Commit(engine.Topic) error {
	// If a sync has failed since Begin, its callers may be here again, and get its error only once. Frames of
	// this transaction may be lost too, so it begins again.
	if f.late.Broken() {
		return fmt.Errorf("%w: a sync of the -wal file has failed", engine.ErrRetry)
	}
	if _, err := f.writer.Exec(`COMMIT`); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrUnknown, err)
	}
	failpoint.Hit("committed")
	if f.late != nil {
		f.moveFrames()
	}
	f.queue.Release()
	return nil
}

// Rollback implements engine.Engine.
func (f *Engine) Rollback() error {
	_, err := f.writer.Exec(`ROLLBACK`)
	f.queue.Release()
	return err
}

// OpenReader implements engine.Engine.
func (f *Engine) OpenReader(ctx context.Context) (*engine.Session, error) {
	s, err := connect(ctx, readerURL(f.path))
	return s, explain(err)
}

// BeginSnapshot implements engine.Engine. The snapshot is that of the first statement after it.
func (f *Engine) BeginSnapshot(_ context.Context, s *engine.Session) (engine.Head, error) {
	_, err := s.Exec(`BEGIN`)
	return engine.Head{}, err
}

// CheckReplaced compares the file with the one that was opened: commits to a file that was replaced or
// removed would succeed and be lost.
func (f *Engine) CheckReplaced() error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, f.opened) {
		return fmt.Errorf("%w: %s", engine.ErrReplaced, f.path)
	}
	return err
}

// replacedOr returns ErrReplaced if the file was replaced, which may be the cause of any error, and err
// otherwise.
func (f *Engine) replacedOr(err error) error {
	if replaced := f.CheckReplaced(); replaced != nil {
		return replaced
	}
	return err
}

// Diagnose implements engine.Engine.
func (f *Engine) Diagnose(err error) error { return withCause(f.path, err) }

// Notify rings the doorbells of the topics.
func (f *Engine) Notify(topics engine.Topic) { f.ringer.Ring(f.path, topics) }

// Close implements engine.Engine.
func (f *Engine) Close() error {
	f.queue.Close()
	f.ringer.Close()
	f.version.close()
	f.closeLateSync()
	return f.writer.Close()
}
