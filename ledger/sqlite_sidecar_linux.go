package ledger

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// The mark is an extended attribute: it comes and goes with the file, and needs no file to be opened, which would drop
// SQLite's locks. It names the file that bears it too, so that one that came along with a copy says nothing. Where
// the file system has no such attributes, nothing is noticed.
const markName = "user.jobledger.belongs"

// identityOf tells a file from every other one, also from one that got its number after it; "" if there is none.
func identityOf(path string) string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d:%d:%d.%09d", st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec)
}

// setMark notes with name, if it is there, that it belongs to the file known as identity.
func setMark(name, identity string) {
	want := identityOf(name) + " of " + identity
	if readMark(name) != want {
		_ = unix.Setxattr(name, markName, []byte(want), 0)
	}
}

// belongs reports whether name may belong to the ledger at path.
func belongs(name, path string) bool {
	self, of, marked := strings.Cut(readMark(name), " of ")
	return !marked || self != identityOf(name) || of == identityOf(path)
}

func readMark(name string) string {
	value := make([]byte, 256)
	n, err := unix.Getxattr(name, markName, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}
