//go:build unix

package doctor

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerOf is the number of the user to whom a file belongs; not known for some file systems.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}

// linksOf is how many names a file has.
func linksOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}

// mayWrite reports whether this process may make files in a folder.
func mayWrite(folder string) bool { return unix.Access(folder, unix.W_OK|unix.X_OK) == nil }

// userName is the name of a user, or the number where there is none.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}
