package place

import (
	"bufio"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// isMountPoint reports whether the file at path, which has no links, is mounted itself.
func isMountPoint(path string) bool {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &st); err == nil &&
		st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	mounts, err := os.Open("/proc/self/mountinfo") // Linux before 5.8
	if err != nil {
		return false
	}
	defer mounts.Close()
	return MountsHave(mounts, path)
}

// MountsHave reports whether path is a mount point by the text of mountinfo.
func MountsHave(mountinfo io.Reader, path string) bool {
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for lines := bufio.NewScanner(mountinfo); lines.Scan(); {
		const mountPoint = 4 // the fifth field of proc_pid_mountinfo(5)
		if fields := strings.Fields(lines.Text()); len(fields) > mountPoint && fields[mountPoint] == escaped {
			return true
		}
	}
	return false
}
