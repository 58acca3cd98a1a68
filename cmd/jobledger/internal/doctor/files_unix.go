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

// mayWriteFile reports whether this process may write a file.
func mayWriteFile(name string) bool { return unix.Access(name, unix.W_OK) == nil }

// sharedByGroup reports whether the group of the ledger main, which may write that, may also use a file of
// another owner: a folder needs all rights of the group, and what a command wrote need only be read.
func sharedByGroup(info, main fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	of, known := main.Sys().(*syscall.Stat_t)
	need := fs.FileMode(0o060)
	if info.IsDir() {
		need = 0o070
	}
	return ok && known && st.Gid == of.Gid && main.Mode()&0o060 == 0o060 && info.Mode()&need == need
}

// userName returns the name of a user, or the number if the user has none.
func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}
