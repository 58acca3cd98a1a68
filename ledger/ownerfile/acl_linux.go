package ownerfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// hasACL reports whether f has a POSIX access list, or whether that is not known.
func hasACL(f *os.File) bool {
	n, err := unix.Fgetxattr(int(f.Fd()), "system.posix_acl_access", nil)
	if err == unix.ENODATA || err == unix.ENOTSUP {
		return false
	}
	return err != nil || n > 0
}
