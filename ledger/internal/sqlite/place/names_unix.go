//go:build unix

package place

import (
	"io/fs"
	"os"
	"syscall"
)

// linksOf returns how many hard links a file has.
func linksOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}

// giveGroup gives a sidecar file that this process has made the ledger's group, without which its mode lets
// other users in than those of the ledger. SQLite has given it the ledger's mode, and run by root its owner.
func giveGroup(name string, ledger fs.FileInfo) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	own, ok := info.Sys().(*syscall.Stat_t)
	of, known := ledger.Sys().(*syscall.Stat_t)
	if ok && known && own.Gid != of.Gid && int(own.Uid) == os.Geteuid() && ledger.Mode()&0o060 != 0 {
		_ = os.Lchown(name, -1, int(of.Gid))
	}
}
