//go:build unix

package sqlite

import (
	"io/fs"
	"syscall"
)

// linksOf returns how many hard links a file has.
func linksOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Nlink)
	}
	return 1
}
