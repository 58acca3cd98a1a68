package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"jobledger/cmd/jobledger/internal/keyfile"
	"jobledger/ledger/proof"
)

func TestKeyFileIsForItsOwnerOnly(t *testing.T) {
	private, public, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := keyfile.Write(path, private); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got, err := keyfile.Private(path); got != private || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := keyfile.Public(path); got != public || err != nil {
		t.Errorf("public: got %q, %v, want %q", got, err, public)
	}
	if err := keyfile.Write(path, private); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written twice: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := keyfile.Private(path); !errors.Is(err, keyfile.ErrReadable) {
		t.Errorf("readable by a group: got %v", err)
	}
	if _, err := keyfile.Public(path); !errors.Is(err, keyfile.ErrReadable) {
		t.Errorf("readable by a group, for its public key: got %v", err)
	}
	if !keyfile.Holds(path) || keyfile.Holds(path+"x") {
		t.Error("Holds is wrong")
	}
}

func TestPublicKeyMayBeReadByAll(t *testing.T) {
	private, public, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"public":  {public + "\n\n", public},
		"cut":     {public[:len(public)-4], ""},
		"empty":   {"", ""},
		"private": {private[:20], ""},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := keyfile.Public(path); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
		if _, err := keyfile.Private(path); err == nil {
			t.Errorf("%s is taken for a private key", name)
		}
	}
}
