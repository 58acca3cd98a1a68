//go:build unix

package ownerfile

import (
	"io/fs"
	"os"
	"syscall"
)

// Owned is a file that can be given away: an [os.File].
type Owned interface {
	Stat() (fs.FileInfo, error)
	Chown(uid, gid int) error
	Chmod(mode fs.FileMode) error
}

// Give gives f the ledger's group and this mode, and the ledger's owner where root made it. It changes only
// what this process owns, and what root owns where it is root. A group that this user is not in stays as it
// was.
func (s Share) Give(f Owned, mode fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	own, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(own.Uid) != os.Geteuid() {
		return nil
	}
	if s.info != nil {
		uid, gid := -1, -1
		if of, ok := s.info.Sys().(*syscall.Stat_t); ok {
			if own.Uid == 0 && of.Uid != 0 {
				uid = int(of.Uid)
			}
			if own.Gid != of.Gid && (uid >= 0 || mode&0o060 != 0) {
				gid = int(of.Gid)
			}
		}
		if uid >= 0 || gid >= 0 {
			if err := f.Chown(uid, gid); err != nil {
				mode &^= 0o070 | fs.ModeSetgid // for another group it is not meant
			}
		}
	}
	const bits = fs.ModePerm | fs.ModeSetgid
	if info.Mode()&bits == mode && s.info == nil {
		return nil
	}
	return f.Chmod(mode)
}

// Owns reports whether a file belongs to this user, to root, or to the ledger's owner.
func (s Share) Owns(file fs.FileInfo) bool {
	st, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if int(st.Uid) == os.Geteuid() || st.Uid == 0 {
		return true
	}
	if s.info == nil {
		return false
	}
	of, ok := s.info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == of.Uid
}

// Trusts reports whether what is in a folder may be used: it belongs to this user, to root, to the ledger's
// owner, or, where the ledger's group may write the ledger, to that group; and not every user may write into
// it.
func (s Share) Trusts(folder fs.FileInfo) bool {
	if folder.Mode()&0o002 != 0 {
		return false
	}
	if s.Owns(folder) {
		return true
	}
	st, ok := folder.Sys().(*syscall.Stat_t)
	if !ok || !s.GroupWrites() {
		return false
	}
	of, ok := s.info.Sys().(*syscall.Stat_t)
	return ok && st.Gid == of.Gid
}

// Plain reports whether a file is a plain one with no other name.
func Plain(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && (!ok || st.Nlink == 1)
}

// NoWait are the flags of [os.OpenFile] with which a named pipe is opened without waiting for its other end,
// and a link is not followed.
const NoWait = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
