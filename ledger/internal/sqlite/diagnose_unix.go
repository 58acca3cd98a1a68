//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"jobledger/ledger/internal/engine"
)

// denied returns the first permission that a writer of the ledger at path needs and this process lacks; nil
// if there is none.
func denied(path string) error {
	for _, need := range []struct {
		name string
		op   string
		mode uint32
	}{
		{path, "read", unix.R_OK},
		{filepath.Dir(path), "write", unix.W_OK | unix.X_OK},
		{path, "write", unix.W_OK},
		{path + "-wal", "write", unix.R_OK | unix.W_OK},
		{path + "-shm", "write", unix.R_OK | unix.W_OK},
	} {
		if err := unix.Access(need.name, need.mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: need.op, Path: need.name, Err: err}
		}
	}
	return nil
}

// mayWriteFile returns ErrReadOnly where this process may read the file at path, and not write it.
func mayWriteFile(path string) error {
	if err := unix.Access(path, unix.W_OK); err != nil && mayRead(path) {
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, &fs.PathError{Op: "write", Path: path, Err: err})
	}
	return nil
}

func mayRead(path string) bool { return unix.Access(path, unix.R_OK) == nil }
