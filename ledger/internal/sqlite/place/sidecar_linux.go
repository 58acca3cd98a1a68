package place

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// The tag is an extended attribute: it lives as long as the file, and is read without opening the file, which
// would drop SQLite's locks. It also names the file that bears it, so that a copied attribute has no effect.
// If the file system has no extended attributes, only missing ledgers are noticed.
const tagName = "user.jobledger.belongs"

// identityOf returns a text that no other file has, not even a later one with the same inode number; "" if
// there is no such file.
func identityOf(path string) string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d.%09d", st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec)
}

// setTag tags the file name, if it exists, as belonging to the file with this identity.
func setTag(name, identity string) {
	want := identityOf(name) + " of " + identity
	if readTag(name) != want {
		_ = unix.Setxattr(name, tagName, []byte(want), 0)
	}
}

// BelongsTo reports whether name may belong to the ledger at path.
func BelongsTo(name, path string) bool {
	self, of, marked := strings.Cut(readTag(name), " of ")
	return !marked || self != identityOf(name) || of == identityOf(path)
}

func readTag(name string) string {
	value := make([]byte, 256)
	n, err := unix.Getxattr(name, tagName, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}
