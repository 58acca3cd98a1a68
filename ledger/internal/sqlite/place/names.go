package place

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jobledger/ledger/internal/engine"
)

// One file under two names. SQLite finds the -wal file of a ledger by the ledger's name. A file with two
// names has two of them: each side acknowledges commands that the other never sees, and a checkpoint
// overwrites pages of the other. Two things give a file a second name: a hard link, and a mount of the file
// alone, as "-v ./jobs.db:/data/jobs.db" makes it in a container.

// Names say how many names a file has, as far as the system says.
type Names struct {
	Links   int  // hard links, without those that an interrupted copy or restore left; 1 where it is unknown
	Mounted bool // the file is mounted alone, without its folder
}

const (
	namesLooks = 5
	namesPause = 10 * time.Millisecond
)

// NamesOf returns the names of the file at path. It does not open the file.
func NamesOf(path string) Names {
	n := Names{Links: 1}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return n
	}
	// A file has a second name for a moment when it is made and when it is replaced, which is not one that a
	// process works with. So a second name counts when it stays.
	for look := range namesLooks {
		if look > 0 {
			time.Sleep(namesPause)
		}
		info, err := os.Stat(real)
		if err != nil {
			return n
		}
		if n.Links = linksOf(info); n.Links > 1 {
			n.Links = max(1, n.Links-ownNames(real, info))
		}
		if n.Links == 1 {
			break
		}
	}
	n.Mounted = isMountPoint(real)
	return n
}

// ownNames counts the names of the file at path that this program gave it for a moment, which are left after
// a crash: of the temporary file that became the ledger, and of the one that a restore was about to replace.
// No process works with these.
func ownNames(path string, info fs.FileInfo) (n int) {
	folder, base := filepath.Split(path)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, "."+base+".") && !strings.HasPrefix(name, base+KeptSuffix) {
			continue
		}
		if other, err := os.Lstat(filepath.Join(folder, name)); err == nil && os.SameFile(info, other) {
			n++
		}
	}
	return n
}

// KeptSuffix is between the name of a ledger that was replaced and the time, in the name that it got then.
const KeptSuffix = ".before-"

// CheckNames returns ErrSecondName if the file at path has another name at which a process may use it.
func CheckNames(path string) error {
	n := NamesOf(path)
	switch {
	case n.Mounted:
		folder := filepath.Dir(path)
		return fmt.Errorf("%w: %s is mounted alone, so its -wal file is not next to the file that was mounted, "+
			"and commands that were acknowledged would be lost; mount the folder that holds it to %s, not the file, "+
			"or say sqlite:%s?names=allow", engine.ErrSecondName, path, folder, path)
	case n.Links > 1:
		return fmt.Errorf("%w: %s has %d names (hard links), each with a -wal file of its own, and commands that "+
			"were acknowledged would be lost; remove the other one, which 'find DIR -samefile %[2]s' shows, or say "+
			"sqlite:%[2]s?names=allow", engine.ErrSecondName, path, n.Links)
	}
	return nil
}
