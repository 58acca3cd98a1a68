package witness

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"jobledger/ledger/proof"
)

// FileError is an error of the witness's own files. It says nothing about the ledger.
type FileError struct{ Err error }

func (e *FileError) Error() string { return "witness: " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// file is where the checkpoint of the ledger called origin is kept. A name may have characters that a file's
// may not.
func (w *Witness) file(origin string) string {
	return filepath.Join(w.folder, fmt.Sprintf("%x", sha256.Sum256([]byte(origin))))
}

// kept is the content of a file of the witness.
type kept struct {
	text  []byte           // nil: there is no file
	last  proof.Checkpoint // that was seen
	known proof.Checkpoint // its last event is the last one of the kind restored that was seen; zero: none was
}

// read returns the content of a file.
func (w *Witness) read(file string) (k kept, err error) {
	if w.folder == "" {
		return k, &FileError{errors.New("neither XDG_STATE_HOME nor HOME is set")}
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	var texts [][]byte
	if err == nil {
		texts, err = proof.SplitCheckpoints(text)
	}
	if err == nil {
		k.text = text
		k.last, err = proof.ParseCheckpoint(texts[0])
	}
	if err == nil && len(texts) > 1 {
		k.known, err = proof.ParseCheckpoint(texts[1])
	}
	if err != nil {
		return kept{}, &FileError{fmt.Errorf("%s: %w", file, err)}
	}
	return k, nil
}

// errChanged means that another process of this host has written a file since it was read.
var errChanged = errors.New("witness: the file has changed")

// replace replaces the content of a file in one step. Errors: errChanged unless its content is still was; nil
// is that of no file.
func (w *Witness) replace(file string, was, text []byte) error {
	err := os.MkdirAll(w.folder, 0o700)
	if err != nil {
		return &FileError{err}
	}
	f, err := os.CreateTemp(w.folder, ".new-*") // 0600
	if err != nil {
		return &FileError{err}
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	now, readErr := os.ReadFile(file)
	switch {
	case err != nil:
	case readErr != nil && !errors.Is(readErr, fs.ErrNotExist):
		err = readErr
	case !bytes.Equal(now, was):
		return cmp.Or(os.Remove(f.Name()), errChanged)
	default:
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return &FileError{errors.Join(err, os.Remove(f.Name()))}
	}
	return nil
}
