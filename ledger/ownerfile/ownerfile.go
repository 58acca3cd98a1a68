// Package ownerfile says which files are open to others. The files of passwords, tokens, webhooks and private
// keys, and the folder of a Unix socket, must be their owner's alone.
//
//	info, err := f.Stat()
//	...
//	err = ownerfile.Check(path, info)
//
// Held by TestLogFolderFollowsLedger and TestLogFolderOfAnotherUser of package commands/worker/attemptlog,
// and by TestKeyFileIsForItsOwnerOnly and TestGroupSharesLedger of the program. This package is not part
// of the Go API, and may change in any release.
package ownerfile

import (
	"fmt"
	"io/fs"
	"runtime"
)

// OpenToOthers reports whether users other than its owner may read, write or enter the file. On Windows,
// whose modes do not show it, the result is false.
func OpenToOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// Check returns an error that names the mode and the remedy if [OpenToOthers] is true of the file at path.
func Check(path string, info fs.FileInfo) error {
	if !OpenToOthers(info) {
		return nil
	}
	return fmt.Errorf("%s lets other users in (mode %04o): chmod 600 it", path, info.Mode().Perm())
}
