package segment

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
)

// ErrOther means that there is a file with the segment's name that holds something else.
var ErrOther = errors.New("segment: there is another file with this name")

// partial is how the names of files end that are being written.
const partial = ".new"

// Create writes the segment file of r, with these events, into the folder dir, which it makes if it is not
// there. The file is synced, read back through a descriptor of its own, and compared with what was written;
// then confirm judges what was read. Only then the file gets its name, its parts are written next to it, and
// the folder is synced. A crash leaves a whole file with that name or none.
//
// A file that has the name already is left as it is. If it is whole and holds the same lines, its facts are
// returned, with its parts; else the error is ErrOther.
func Create(dir string, r Range, events iter.Seq2[event.Event, error], confirm func(*Facts) error) (f Facts,
	parts *Parts, err error) {
	if err := r.Check(); err != nil {
		return f, nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return f, nil, err
	}
	temp, err := os.CreateTemp(dir, r.Name()+".*"+partial)
	if err != nil {
		return f, nil, err
	}
	defer os.Remove(temp.Name())
	written, err := write(temp, r, events)
	if err != nil {
		return f, nil, err
	}
	failpoint.Hit("segment-written")
	f, parts, err = CheckFile(temp.Name(), r)
	if err == nil && !f.Same(&written) {
		err = fmt.Errorf("%w: what was read back from %s is not what was written", ErrDamaged, temp.Name())
	}
	if err == nil {
		err = confirm(&f)
	}
	if err != nil {
		return Facts{}, nil, err
	}
	failpoint.Hit("segment-checked")
	path := filepath.Join(dir, r.Name())
	if f, parts, err = publish(temp.Name(), path, f, parts); err != nil {
		return Facts{}, nil, err
	}
	failpoint.Hit("segment-named")
	if err := writeParts(path, parts); err != nil {
		return Facts{}, nil, err
	}
	return f, parts, syncFolder(dir)
}

// write writes the file and closes it.
func write(file *os.File, r Range, events iter.Seq2[event.Event, error]) (f Facts, err error) {
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	out := bufio.NewWriterSize(file, 256<<10)
	w, err := NewWriter(out, r)
	if err != nil {
		return f, err
	}
	for e, err := range events {
		if err == nil {
			err = w.Add(&e)
		}
		if err != nil {
			return f, err
		}
	}
	if f, err = w.Close(); err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	return f, err
}

// publish gives the file at temp, of which f and parts are, the name path. If the file already exists with
// the same content, it stays.
func publish(temp, path string, f Facts, parts *Parts) (Facts, *Parts, error) {
	err := os.Link(temp, path) // unlike a rename, it replaces no file
	if err == nil {
		return f, parts, nil
	}
	if _, statErr := os.Lstat(path); errors.Is(statErr, fs.ErrNotExist) { // a file system without links
		return f, parts, os.Rename(temp, path)
	}
	if !errors.Is(err, fs.ErrExist) {
		return f, nil, err
	}
	there, parts, err := CheckFile(path, f.Range)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return f, nil, err
	}
	if err != nil || !there.SameContent(&f) {
		return f, nil, fmt.Errorf("%w: %s is not what this ledger would write; move it away", ErrOther, path)
	}
	return there, parts, nil
}

// CheckFile is [Check] of the file at path.
func CheckFile(path string, r Range) (f Facts, parts *Parts, err error) {
	file, err := os.Open(path) //#nosec G304 -- a file of the archive that the user named
	if err != nil {
		return f, nil, err
	}
	defer file.Close()
	f, parts, err = Check(file, r)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return f, parts, err
}

// Sum returns the SHA-256 of the file at path.
func Sum(path string) (sum [sha256.Size]byte, err error) {
	file, err := os.Open(path) //#nosec G304 -- a file of the archive that the user named
	if err != nil {
		return sum, err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// RemovePartial removes what writers of the files up to position hi have left in dir when they were killed.
// No writer of these files may be running whose file is still needed.
func RemovePartial(dir string, hi int64) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		whole, ok := strings.CutSuffix(entry.Name(), partial)
		if !ok {
			continue
		}
		whole, _, _ = strings.Cut(whole, ".") // without its end, and the random part
		if r, ok := ParseName(whole + ".jsonl.gz"); ok && r.Hi <= hi {
			gone := os.Remove(filepath.Join(dir, entry.Name()))
			if !errors.Is(gone, fs.ErrNotExist) { // the process whose file it was may have removed it
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// syncFolder makes the names in dir durable.
func syncFolder(dir string) error {
	folder, err := os.Open(dir) //#nosec G304 -- the folder of the archive
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
