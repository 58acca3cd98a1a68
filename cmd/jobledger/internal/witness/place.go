package witness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"jobledger/ledger"
)

// place is a file about an address: "name" has the name that the ledger there had when this host saw it last,
// and "history" what was replaced. The host is a part of its name, since hosts may share the folder and have
// other ledgers at the same path.
func (w *Witness) place(address, what string) string {
	host, _ := os.Hostname()
	return filepath.Join(w.folder, fmt.Sprintf("%x.%s", sha256.Sum256([]byte(host+"\n"+address)), what))
}

// nameAt returns the name that the ledger at an address had; "" where none is known. What cannot be read is
// not known: a ledger that is not sealed must not fail for it.
func (w *Witness) nameAt(address string) string {
	if w.folder == "" {
		return ""
	}
	text, err := os.ReadFile(w.place(address, "name"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

// keepName keeps the name that the ledger of store has now, or that it has none.
func (w *Witness) keepName(store *ledger.Store, s Seen) error {
	was := w.nameAt(store.Path())
	if was == s.Origin || w.folder == "" {
		return nil
	}
	file := w.place(store.Path(), "name")
	if s.Origin == "" {
		if err := os.Remove(file); err != nil {
			return &FileError{err}
		}
		return nil
	}
	var before []byte
	if was != "" {
		before = []byte(was + "\n")
	}
	if err := w.replace(file, before, []byte(s.Origin+"\n")); !errors.Is(err, errChanged) {
		return err
	}
	return nil // another process of this host keeps what it sees
}
