//go:build unix

package doctor

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerOf returns the user ID of the owner of a file, if the file system has one.
func ownerOf(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}

// othersMay reports whether every user has one of these rights to a file.
func othersMay(info fs.FileInfo, rights fs.FileMode) bool { return info.Mode().Perm()&rights != 0 }

// writableBy reports whether a user may write a file, by its owner, group and mode.
func writableBy(info fs.FileInfo, uid, gid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !ok:
		return true
	case int(st.Uid) == uid:
		return mode&0o200 != 0
	case int(st.Gid) == gid:
		return mode&0o020 != 0
	default:
		return mode&0o002 != 0
	}
}

// mayWrite reports whether this process may make files in a folder.
func mayWrite(folder string) bool { return unix.Access(folder, unix.W_OK|unix.X_OK) == nil }

// userName returns the name of a user, or the number if the user has none.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}
