package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/place"
)

const (
	openWait  = 10 * time.Second // for the write lock, while many processes start at once
	openTries = 3                // of a file that is replaced meanwhile; nothing has been written yet
)

// Open opens the ledger at dsn. With create it makes a missing one; otherwise a missing one is ErrNoLedger.
// One that this process may only read is opened for reading, and so is one with a second name; Info says so.
func Open(ctx context.Context, dsn string, create bool) (engine.Engine, error) {
	path, options, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	lockByDescription()
	var f *Engine
	for range openTries {
		if f, err = openAt(ctx, path, options, create); !errors.Is(err, engine.ErrReplaced) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	if why := onlyRead(path, err); why != nil {
		return openReading(ctx, path, options, why)
	}
	return nil, err
}

func openAt(ctx context.Context, path string, options options, create bool) (*Engine, error) {
	if !options.names {
		if err := place.CheckNames(path); err != nil {
			return nil, err
		}
	}
	if err := place.CheckSidecars(path, create); err != nil {
		return nil, err
	}
	if err := prepareFile(path, options, create); err != nil {
		return nil, err
	}
	if err := mayWriteFile(path); err != nil { // SQLite would read it, and leave sidecar files of this user
		return nil, err
	}
	if err := writeApplicationID(ctx, path, create); err != nil {
		return nil, withCause(path, err)
	}
	if err := checkForeign(ctx, path); err != nil {
		return nil, withCause(path, err)
	}
	if err := checkStrayWAL(ctx, path); err != nil {
		return nil, err
	}
	f := &Engine{path: path, info: engine.Info{Path: path, Sync: options.sync}}
	var pin *os.File
	defer func() { _ = pin.Close() }()
	err := retryBusy(ctx, time.Now(), openWait, func() (err error) {
		_ = pin.Close() // of the previous attempt
		if pin, err = pinName(path); err != nil {
			return err
		}
		// Before SQLite opens the file: where the name cannot be pinned, the file may be replaced in between.
		if f.opened, err = os.Stat(path); err != nil {
			return err
		}
		failpoint.Hit("connecting")
		if f.writer, err = connect(ctx, writerURL(path, options.sync)); err != nil {
			return f.replacedOr(err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, withCause(path, explain(err)))
	}
	failpoint.Hit("connected")
	if f.info.SchemaVersion, err = f.setUp(ctx); err != nil {
		_ = f.writer.Close()
		return nil, withCause(path, explain(err))
	}
	if err = f.startLateSyncs(ctx); err != nil {
		_ = f.writer.Close()
		return nil, withCause(path, explain(err))
	}
	place.TagSidecars(path, f.opened)
	return f, nil
}

// lockByDescription asks for locks that survive when other code in the process closes the same file. The
// driver refuses that in a host program that has opened SQLite files already; then the rules of that program
// hold.
var lockByDescription = sync.OnceFunc(func() { _, _ = sqlite.OFDLocking(true) })

// prepareFile refuses a file that cannot be a ledger because of its type, and creates an empty one that only
// its owner can read.
func prepareFile(path string, o options, create bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !create:
		return fmt.Errorf("%w at %s", engine.ErrNoLedger, path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is %s", engine.ErrNotALedger, path, typeOfFile(info.Mode()))
	case err == nil && info.Size() == 0 && !create:
		return fmt.Errorf("%w at %s: the file is empty", engine.ErrNoLedger, path)
	}
	at := path // which may be a link to another file system
	if err != nil {
		at = filepath.Dir(path)
	}
	if refused := refuseNetwork(path, at, o); refused != nil || err == nil {
		return refused
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

func typeOfFile(m fs.FileMode) string {
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
