//go:build unix

package ownerfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Alone returns who else, besides this user and root, may change the file at path or put another one in its
// place, as an error; nil if no user may. It looks at the file that is open by that path, at the names after
// it that are there, at each folder up to the root, and where there are links, at the folders of both ends. A
// sticky folder of root's, such as /tmp, is safe where the next folder is this user's own. A folder that
// others may write is safe below one that no other user may enter, such as a home of mode 0700.
func Alone(path string, after ...string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, name := range append([]string{""}, after...) {
		if err := aloneFile(real + name); err != nil && (name == "" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	if err := aloneWay(real, 0); err != nil {
		return err
	}
	return aloneWay(path, 0)
}

func aloneFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|NoWait, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a plain file", path)
	case !(Share{}).Owns(info):
		return fmt.Errorf("%s belongs to %s", path, ownerOf(info))
	case info.Mode()&0o002 != 0:
		return fmt.Errorf("every user may write %s (mode %04o)", path, info.Mode().Perm())
	case info.Mode()&0o020 != 0:
		return fmt.Errorf("%s may write %s (mode %04o)", groupOf(info), path, info.Mode().Perm())
	case hasACL(f):
		return fmt.Errorf("%s has an access list: 'getfacl' shows it, 'setfacl -b' removes it", path)
	}
	return nil
}

// maxLinks is how many links a path may lead through.
const maxLinks = 40

// aloneWay checks the folders above path, and those above each end of a link.
func aloneWay(path string, links int) error {
	var reached error // a folder below that others may write, if they can reach it
	below, err := os.Lstat(path)
	for err == nil && path != filepath.Dir(path) {
		if below.Mode()&fs.ModeSymlink != 0 {
			if reached != nil { // what is above the link is not above the folder
				return reached
			}
			to, err := os.Readlink(path)
			if err == nil && links == maxLinks {
				err = syscall.ELOOP
			}
			if err != nil {
				return err
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			if err := aloneWay(to, links+1); err != nil {
				return err
			}
		}
		folder := filepath.Dir(path)
		var info fs.FileInfo
		if info, err = os.Lstat(folder); err != nil {
			break
		}
		if info.Mode()&fs.ModeSymlink != 0 { // the folder itself is that of the real path
			path, below = folder, info
			continue
		}
		st, _ := info.Sys().(*syscall.Stat_t)
		open := info.Mode()&0o022 != 0
		sticky := open && info.Mode()&fs.ModeSticky != 0 && st != nil && st.Uid == 0
		switch {
		case !(Share{}).Owns(info):
			return fmt.Errorf("the folder %s belongs to %s", folder, ownerOf(info))
		case sticky && !below.IsDir() && below.Mode()&fs.ModeSymlink == 0:
			return fmt.Errorf("every user may make files in %s, next to the ledger: give it a folder of its "+
				"own", folder)
		case sticky && !(Share{}).Owns(below):
			return fmt.Errorf("%s belongs to %s", path, ownerOf(below))
		case open && !sticky:
			reached = cmp.Or(reached, fmt.Errorf("others may write the folder %s (mode %04o)", folder,
				info.Mode().Perm()))
		}
		if info.Mode()&0o011 == 0 { // an access list lets no user in either: the group's bits are its mask
			reached = nil
		}
		path, below = folder, info
	}
	return cmp.Or(err, reached)
}

func ownerOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "another user"
	}
	id := strconv.Itoa(int(st.Uid))
	if u, err := user.LookupId(id); err == nil {
		return "the user " + u.Username
	}
	return "the user " + id
}

func groupOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "a group"
	}
	id := strconv.Itoa(int(st.Gid))
	if g, err := user.LookupGroupId(id); err == nil {
		return "the group " + g.Name
	}
	return "the group " + id
}
