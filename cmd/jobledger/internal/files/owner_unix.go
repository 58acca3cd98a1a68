//go:build unix

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// copyOwner gives the file at path the owner, the group and the permissions of another file.
func copyOwner(path string, other fs.FileInfo) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	want, wantOK := other.Sys().(*syscall.Stat_t)
	if ok && wantOK && (is.Uid != want.Uid || is.Gid != want.Gid) {
		if err := os.Chown(path, int(want.Uid), int(want.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(path, other.Mode().Perm())
}
