package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

// unfinished is a ledger that is being written: a file of its own beside the place where it is to appear. Whatever
// goes wrong, what stands at that place is a whole ledger or nothing.
type unfinished struct {
	*commands.Service
	path, temp string
}

// startLedger begins a ledger for path, where nothing may be. options are those of its DSN.
func (p *program) startLedger(ctx context.Context, path, options string) (*unfinished, error) {
	if err := freePlace(path); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // readable by its owner only
	if err != nil {
		return nil, noFolder(path, err)
	}
	u := &unfinished{path: path, temp: file.Name()}
	if err := file.Close(); err != nil {
		u.discard()
		return nil, err
	}
	dsn := u.temp
	if options != "" {
		dsn = "sqlite:" + u.temp + "?" + options
	}
	if u.Service, err = p.service(ledger.Open(ctx, dsn)); err != nil {
		u.discard()
		return nil, err
	}
	return u, nil
}

// finish makes the ledger whole and gives it its name.
func (u *unfinished) finish() error {
	if err := u.whole(); err != nil {
		return err
	}
	return giveName(u.temp, u.path)
}

// whole closes the ledger, which makes it durable.
func (u *unfinished) whole() error {
	if err := u.Store.Close(); err != nil { // the last one to close empties the -wal file and removes it
		return err
	}
	if _, err := os.Lstat(u.temp + "-wal"); err == nil {
		return fmt.Errorf("%s-wal is still there: somebody else has opened the unfinished ledger", u.temp)
	}
	return nil
}

// giveName makes a whole file appear as path, where nothing may be, and that durable.
func giveName(temp, path string) error {
	err := os.Link(temp, path) // unlike a rename, it does not overwrite what came there meanwhile
	failpoint.Hit("linked")
	switch {
	case errors.Is(err, fs.ErrExist):
		return exitf(exitConflict, "%s has come into being meanwhile; it was not touched", path)
	case err != nil: // a file system without links
		err = os.Rename(temp, path)
	default:
		err = os.Remove(temp)
	}
	if err != nil {
		return err
	}
	return ledger.SyncFolder(filepath.Dir(path))
}

// freePlace makes sure that a new ledger may appear as path: nothing is there, and nothing that SQLite would take for
// the new file's own.
func freePlace(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return withHint(exitf(exitConflict, "%s exists already; it was not touched", path), "give a name that is free")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return withHint(exitf(exitConflict, "%s is there without its database", path+suffix), "it is what is left of another one; move it away")
		}
	}
	return nil
}

// discard removes whatever is left. After finish there is nothing to remove.
func (u *unfinished) discard() {
	if u.Service != nil {
		_ = u.Store.Close()
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(u.temp + suffix)
	}
}
