package segment

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"jobledger/ledger/proof"
)

// MemberLines is how many lines a gzip member has at most. It is the size of a block of the hash tree.
const MemberLines = proof.BlockSize

// ErrDamaged means that a file is not what [Writer] wrote.
var ErrDamaged = errors.New("segment: damaged")

// Range is the positions Lo+1, …, Hi of a ledger. Both are multiples of MemberLines.
type Range struct{ Lo, Hi int64 }

// Check returns an error unless r is a range that a segment can have.
func (r Range) Check() error {
	if r.Lo < 0 || r.Hi <= r.Lo || r.Lo%MemberLines != 0 || r.Hi%MemberLines != 0 {
		return fmt.Errorf("segment: no range from %d to %d: both are multiples of %d, and the second is larger",
			r.Lo, r.Hi, MemberLines)
	}
	return nil
}

// Name returns the name of the file of r, such as "0000000000-0001048576.jsonl.gz". Names sort by position,
// up to ten thousand million events.
func (r Range) Name() string { return fmt.Sprintf("%010d-%010d.jsonl.gz", r.Lo, r.Hi) }

var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{10,19})-([0-9]{10,19})\.jsonl\.gz$`)
})

// ParseName returns the range of the file with this name; ok is false if it is not the name of a segment.
func ParseName(name string) (r Range, ok bool) {
	parts := nameForm().FindStringSubmatch(name)
	if parts == nil {
		return r, false
	}
	lo, loErr := strconv.ParseInt(parts[1], 10, 64)
	hi, hiErr := strconv.ParseInt(parts[2], 10, 64)
	r = Range{lo, hi}
	return r, loErr == nil && hiErr == nil && r.Check() == nil && r.Name() == name
}

// Facts are what a segment file holds.
type Facts struct {
	Range
	Carried         int64             // carried-in lines
	Jobs            int64             // that have lines in the file
	FirstAt, LastAt time.Time         // of the first and the last event of the range
	Blocks          []proof.Hash      // of the blocks of the range, in order
	Content         [sha256.Size]byte // the SHA-256 of all lines
	SHA256          [sha256.Size]byte // of the file
	Bytes           int64             // of the file
}

// Events returns how many events the range has.
func (r Range) Events() int64 { return r.Hi - r.Lo }

// SameContent reports whether f and other hold the same lines. The files may differ: another version of Go
// may compress in another way.
func (f *Facts) SameContent(other *Facts) bool {
	return f.Range == other.Range && f.Carried == other.Carried && f.Content == other.Content
}

// Same reports whether f and other are of the same file, to the byte.
func (f *Facts) Same(other *Facts) bool {
	return f.SameContent(other) && f.SHA256 == other.SHA256 && f.Bytes == other.Bytes
}

// CheckBlocks compares the blocks of f with those that a ledger has for the same range, in order. An error
// says which events differ and wraps ErrDamaged.
func (f *Facts) CheckBlocks(blocks []proof.Hash) error {
	if len(blocks) != len(f.Blocks) {
		return fmt.Errorf("%w: %d blocks, and the ledger has %d for the range", ErrDamaged, len(f.Blocks),
			len(blocks))
	}
	for i, hash := range blocks {
		if f.Blocks[i] != hash {
			from := f.Lo + int64(i)*MemberLines
			return fmt.Errorf("%w: the events %d to %d are not those of the ledger's block %d",
				ErrDamaged, from+1, from+MemberLines, from/MemberLines)
		}
	}
	return nil
}
