package segment

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Parts are the texts of the files that are next to a segment file and follow from it: its index, and its
// summary. A user who can exchange one can exchange a checksum in it too, so a reader believes only the one
// whose digest the ledger names.
type Parts struct{ index, summary []byte }

// ends are how the names of parts end, behind a dot.
var ends = [...]string{"idx", "sum"}

// text returns the text of the part whose name ends so.
func (p *Parts) text(end string) []byte {
	if end == "idx" {
		return p.index
	}
	return p.summary
}

// Digests returns the SHA-256 of each part, in hex, by the end of its name: those of event.Archived.
func (p *Parts) Digests() map[string]string {
	digests := make(map[string]string, len(ends))
	for _, end := range ends {
		digests[end] = digest(p.text(end))
	}
	return digests
}

func digest(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// Index returns the index.
func (p *Parts) Index() (*Index, error) { return ParseIndex(p.index) }

// PartName returns the name or path of a part of the segment file with this name or path: that of the index
// ends with "idx", that of the summary with "sum".
func PartName(path, end string) string { return strings.TrimSuffix(path, ".jsonl.gz") + "." + end }

// LoadIndex returns the index next to the segment file at path, which has this SHA-256, if its own SHA-256 is
// digest, in hex. Nothing else is believed: that is an error, which wraps ErrDamaged or fs.ErrNotExist, and
// [MakeIndex] helps.
func LoadIndex(path string, r Range, sum [32]byte, digest string) (*Index, error) {
	x, err := ReadIndex(path, r, sum)
	if err == nil && x.Digest() != digest {
		return nil, fmt.Errorf("%w: %s is another index", ErrDamaged, PartName(path, "idx"))
	}
	return x, err
}

// ReadIndex returns the index that is next to the segment file at path, which has this SHA-256. Nothing
// proves that it is right: use it only as a hint where to look.
func ReadIndex(path string, r Range, sum [32]byte) (*Index, error) {
	text, err := os.ReadFile(PartName(path, "idx"))
	if err != nil {
		return nil, err
	}
	x, err := ParseIndex(text)
	if err == nil && (x.Range != r || x.SHA256 != sum) {
		err = fmt.Errorf("%w: the index is of another file", ErrDamaged)
	}
	return x, err
}

// MakeIndex makes the index of the segment file at path, which has this SHA-256, from the file, and reads it
// whole. It writes the index if there is none; that it cannot be written is not an error, for the archive may
// be a disk that is only read.
func MakeIndex(path string, r Range, sum [32]byte) (*Index, error) {
	f, parts, err := CheckFile(path, r)
	if err != nil {
		return nil, err
	}
	if f.SHA256 != sum {
		return nil, fmt.Errorf("%w: %s is another file: its SHA-256 is %x, and the ledger names %x", ErrDamaged,
			path, f.SHA256, sum)
	}
	if _, err := os.Lstat(PartName(path, "idx")); errors.Is(err, fs.ErrNotExist) {
		_ = writePart(PartName(path, "idx"), parts.index)
	}
	return parts.Index()
}

// CheckParts compares the files next to the segment file at path with parts, which [CheckFile] made of the
// file itself. One that says something else, or cannot be read, is replaced, and the error wraps ErrDamaged.
// One that is not there is written, which is not an error.
func CheckParts(path string, parts *Parts) (err error) {
	for _, end := range ends {
		name := PartName(path, end)
		text, readErr := os.ReadFile(name) //#nosec G304 -- a file of the archive that the user named
		wrong := fmt.Errorf("%w: %s does not match the file", ErrDamaged, name)
		switch {
		case errors.Is(readErr, fs.ErrNotExist):
			_ = writePart(name, parts.text(end))
			continue
		case readErr != nil:
			wrong = fmt.Errorf("%w: it cannot be read: %w", wrong, readErr)
		case bytes.Equal(text, parts.text(end)):
			continue
		}
		if writeErr := writePart(name, parts.text(end)); writeErr != nil {
			wrong = fmt.Errorf("%w; it cannot be replaced: %w", wrong, writeErr)
		} else {
			wrong = fmt.Errorf("%w; it was made again", wrong)
		}
		err = errors.Join(err, wrong)
	}
	return err
}

// writeParts writes the parts of the file at path next to it.
func writeParts(path string, parts *Parts) (err error) {
	for _, end := range ends {
		err = errors.Join(err, writePart(PartName(path, end), parts.text(end)))
	}
	return err
}

// writePart writes a part. It can be made again, but not half of it may be there.
func writePart(name string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*"+partial)
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(text)
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	return err
}
