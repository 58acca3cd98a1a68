package files

import (
	"context"
	"fmt"
	"os"

	"jobledger/ledger"
)

// Copy describes a backup.
type Copy struct {
	Events int64 // up to the moment of the backup
	Bytes  int64 // of the file
}

// Backup writes a consistent copy of the ledger in store, which others may be using, to path. The copy holds
// everything up to one moment. It appears at path when it is whole and durable, and only its owner may read
// it.
//
// Errors: ErrExists, ErrLeftover.
func Backup(ctx context.Context, store *ledger.Store, path string) (Copy, error) {
	if err := checkFree(path); err != nil {
		return Copy{}, err
	}
	s, err := newStaging(path)
	if err != nil {
		return Copy{}, err
	}
	defer s.discard()
	events, err := store.Vacuum(ctx, s.temp)
	if err != nil {
		return Copy{}, fmt.Errorf("backup to %s: %w", path, err)
	}
	size, err := syncFile(s.temp)
	if err != nil {
		return Copy{}, err
	}
	return Copy{Events: events, Bytes: size}, s.link()
}

// syncFile makes the file at path durable and returns its size in bytes.
func syncFile(path string) (size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
