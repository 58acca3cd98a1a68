//go:build !unix

package ownerfile

import "io/fs"

// Owned is a file that can be given away: an [os.File].
type Owned interface {
	Stat() (fs.FileInfo, error)
	Chown(uid, gid int) error
	Chmod(mode fs.FileMode) error
}

// Give does nothing: the system has no groups of files.
func (s Share) Give(Owned, fs.FileMode) error { return nil }

// Owns returns true, as Trusts does.
func (s Share) Owns(fs.FileInfo) bool { return true }

// Trusts returns true: the mode does not say who may write.
func (s Share) Trusts(fs.FileInfo) bool { return true }

// Plain reports whether a file is a plain one.
func Plain(info fs.FileInfo) bool { return info.Mode().IsRegular() }

// NoWait is 0: opening a file waits for nothing here.
const NoWait = 0
