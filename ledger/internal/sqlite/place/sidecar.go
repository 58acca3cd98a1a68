package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"jobledger/ledger/internal/engine"
)

// The sidecar files. SQLite finds the -wal and the -shm file of a ledger by their names alone. If the ledger
// was removed or replaced while it was in use, or after a crash, the old ones are still there: the new ledger
// would get pages of the old one, and two processes with different ledgers would share one index of the -wal
// file, which has lost acknowledged commands. So stray sidecar files are refused.

// Suffixes are what the names of the sidecar files end with.
var Suffixes = [...]string{"-wal", "-shm"}

// CheckSidecars returns ErrForeignSidecar if a -wal or -shm file belongs to another ledger than the one at
// path, or exists before the ledger is created. A file that is less writable than the ledger, because the
// ledger's mode has changed since, gets the ledger's mode.
func CheckSidecars(path string, create bool) error {
	path = RealPath(path)
	for _, suffix := range Suffixes {
		name := path + suffix
		sidecar, err := os.Lstat(name) // before the ledger, without which it never exists
		if err != nil {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil || info.Size() == 0:
			if create {
				return fmt.Errorf("%w: %s is left of a ledger that stood at this place and was removed",
					engine.ErrForeignSidecar, name)
			}
		case !BelongsTo(name, path):
			return fmt.Errorf("%w: %s is left of a ledger that stood at this place before this one",
				engine.ErrForeignSidecar, name)
		case info.Mode()&^sidecar.Mode()&0o222 != 0 && sidecar.Mode().IsRegular():
			_ = os.Chmod(name, info.Mode().Perm()) // as SQLite would have made it now
		}
	}
	return nil
}

// TagSidecars tags the -wal and -shm files as those of the ledger at path, which was opened as file.
func TagSidecars(path string, file fs.FileInfo) {
	path = RealPath(path)
	identity := identityOf(path)
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, file) || identity != identityOf(path) {
		return // replaced just now
	}
	for _, suffix := range Suffixes {
		setTag(path+suffix, identity)
		giveGroup(path+suffix, file)
	}
}

// RealPath resolves links, because SQLite keeps the sidecar files next to the file itself.
func RealPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
