package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"jobledger/ledger"
	"jobledger/ledger/proof"
)

// CheckFile compares the ledger with the last checkpoint in a file to which another is to be appended. A file
// that is empty or missing is right. Errors: ErrForked; proof.ErrInvalid if the file holds something else.
func CheckFile(ctx context.Context, store *ledger.Store, file string) error {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		return nil
	}
	var list []proof.Checkpoint
	if err == nil {
		list, _, err = ReadKept(content)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	last := list[len(list)-1]
	return store.Read(ctx, func(tx *ledger.Tx) error {
		compared, err := Compare(ctx, tx, last)
		if err == nil && !compared.Same() {
			err = fmt.Errorf("%w, the last one in %s: of %d events with root %s", ErrForked, file, last.Size,
				last.Root)
			if compared.Restored != nil {
				err = fmt.Errorf("%w; %s: begin another file", err, compared.Restored)
			}
		}
		return err
	})
}

// AppendFile appends the text of a checkpoint to a file and syncs it. A missing one is made, for its owner
// only. A file that ends with the text is left alone. What was written in part is removed again.
func AppendFile(file string, text []byte) (err error) {
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	made := err != nil
	if bytes.HasSuffix(content, text) {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, withdraw(f, content, text))
	}
	if err = errors.Join(err, f.Close()); err == nil && made {
		err = syncFolder(filepath.Dir(file))
	}
	return err
}

// withdraw removes what was written of text behind the content before. What another process has appended
// meanwhile stays.
func withdraw(f *os.File, before, text []byte) error {
	now, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	written, ok := bytes.CutPrefix(now, before)
	if !ok || !bytes.HasPrefix(text, written) {
		return nil
	}
	return f.Truncate(int64(len(before)))
}

// syncFolder makes the name of a new file durable, where the system can.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	_ = d.Sync() // not every system can sync a folder
	return d.Close()
}
