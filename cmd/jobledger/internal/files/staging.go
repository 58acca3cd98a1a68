package files

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

// staging is a ledger that is being written: a temporary file in the folder of the path at which it will
// appear. Whatever fails, there is a whole ledger at that path or none. The caller calls discard at the end.
type staging struct {
	*commands.Service        // nil until open
	path              string // where the ledger will appear
	temp              string
}

// newStaging makes an empty temporary file for path. Only its owner may read it.
func newStaging(path string) (*staging, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	s := &staging{path: path, temp: file.Name()}
	if err := file.Close(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// newLedger makes a staging with an empty ledger in it, for a path that must be free. options are those of a
// DSN.
func newLedger(ctx context.Context, path, options string) (*staging, error) {
	if err := checkFree(path); err != nil {
		return nil, err
	}
	s, err := newStaging(path)
	if err != nil {
		return nil, err
	}
	dsn := s.temp
	if options != "" {
		dsn = "sqlite:" + s.temp + "?" + options
	}
	store, err := ledger.Open(ctx, dsn)
	if err != nil {
		s.discard()
		return nil, err
	}
	s.Service = service(store)
	return s, nil
}

// service returns the commands on store. A test may have shifted the clock.
func service(store *ledger.Store) *commands.Service {
	if failpoint.Shifted() {
		store.Now = failpoint.Now
	}
	return &commands.Service{Store: store}
}

// close closes the ledger, which makes it durable.
func (s *staging) close() error {
	if err := s.Store.Close(); err != nil { // the last process to close it empties the -wal file and removes it
		return err
	}
	if _, err := os.Lstat(s.temp + "-wal"); err == nil {
		return fmt.Errorf("%s-wal is still there: another process has opened the temporary file", s.temp)
	}
	return nil
}

// publish closes the ledger and gives it its name.
func (s *staging) publish() error {
	if err := s.close(); err != nil {
		return err
	}
	return s.link()
}

// link gives the temporary file its name, at which there must be no file, and makes that durable.
func (s *staging) link() error {
	err := os.Link(s.temp, s.path) // unlike a rename, it does not overwrite a file that has appeared since
	failpoint.Hit("linked")
	switch {
	case errors.Is(err, fs.ErrExist):
		return refuse(ErrExists, "%s has appeared meanwhile; it was not touched", s.path)
	case err != nil: // a file system without links
		err = os.Rename(s.temp, s.path)
	default:
		err = os.Remove(s.temp)
	}
	if err != nil {
		return err
	}
	return ledger.SyncFolder(filepath.Dir(s.path))
}

// checkFree makes sure that a new ledger may appear at path: there is no file, and none that SQLite would
// take for a part of the new one. Errors: ErrExists, ErrLeftover.
func checkFree(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return refuse(ErrExists, "%s exists already; it was not touched", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return refuse(ErrLeftover, "%s is there without its database", path+suffix)
		}
	}
	return nil
}

// discard closes the ledger and removes the temporary files. After publish or link there are none.
func (s *staging) discard() {
	if s.Service != nil {
		_ = s.Store.Close()
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(s.temp + suffix)
	}
}
