package ownerfile

import (
	"io/fs"
	"os"
)

// Share is how the files next to a ledger are shared: as the ledger itself is, with its owner and its group.
// The zero Share is that of a folder without a ledger's file: its files are their owner's alone.
type Share struct {
	info fs.FileInfo // nil: there is no file
}

// ShareOf returns how the files next to the ledger at path are to be shared. It does not open the file.
func ShareOf(path string) Share {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return Share{}
	}
	return Share{info}
}

// GroupReads reports whether the ledger's group may read it.
func (s Share) GroupReads() bool { return s.info != nil && s.info.Mode()&0o040 != 0 }

// GroupWrites reports whether the ledger's group may write it.
func (s Share) GroupWrites() bool { return s.info != nil && s.info.Mode()&0o060 == 0o060 }
