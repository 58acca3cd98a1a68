package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SQLite finds the -wal and the -shm file of a ledger by their names alone. Where the ledger was removed or exchanged
// while it was in use, or after a crash, those of the old one are still there: the new one would get pages of the old,
// and two processes that use different ledgers would share one memory of what is where, which has lost commands that
// were acknowledged. So both are refused.

var besideSuffixes = [...]string{"-wal", "-shm"}

// checkBeside returns ErrStray where a -wal or -shm file belongs to another ledger than the one at path, or is there
// where one is to be created. One that may only be read, because the ledger could when it was made, is made as
// writable as that.
func checkBeside(path string, create bool) error {
	path = realPath(path)
	for _, suffix := range besideSuffixes {
		name := path + suffix
		beside, err := os.Lstat(name) // looked at before the ledger: it never is there without one
		if err != nil {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil || info.Size() == 0:
			if create {
				return fmt.Errorf("%w: %s is left of a ledger that stood at this place and was removed", ErrStray, name)
			}
		case !belongs(name, path):
			return fmt.Errorf("%w: %s is left of a ledger that stood at this place before this one", ErrStray, name)
		case info.Mode()&^beside.Mode()&0o222 != 0 && beside.Mode().IsRegular():
			_ = os.Chmod(name, info.Mode().Perm()) // as SQLite would have made it now
		}
	}
	return nil
}

// markBeside notes with the -wal and -shm files that they belong to the ledger at path, which was opened as file.
func markBeside(path string, file fs.FileInfo) {
	path = realPath(path)
	identity := identityOf(path)
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, file) || identity != identityOf(path) {
		return // exchanged just now
	}
	for _, suffix := range besideSuffixes {
		setMark(path+suffix, identity)
	}
}

// realPath is where SQLite puts the files beside a ledger that is reached by a link.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
