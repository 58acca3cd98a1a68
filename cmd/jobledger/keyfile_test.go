package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/ledger/proof"
)

func TestKeyFileIsForItsOwnerOnly(t *testing.T) {
	private, public, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := prove.WriteKey(path, private); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got, err := prove.PrivateKey(path); got != private || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := prove.PublicKey(path); got != public || err != nil {
		t.Errorf("public: got %q, %v, want %q", got, err, public)
	}
	if err := prove.WriteKey(path, private); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written twice: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := prove.PrivateKey(path); !errors.Is(err, prove.ErrReadable) {
		t.Errorf("readable by a group: got %v", err)
	}
	if _, err := prove.PublicKey(path); !errors.Is(err, prove.ErrReadable) {
		t.Errorf("readable by a group, for its public key: got %v", err)
	}
	if !prove.HoldsKey(path) || prove.HoldsKey(path+"x") {
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
		if got, err := prove.PublicKey(path); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
		if _, err := prove.PrivateKey(path); err == nil {
			t.Errorf("%s is taken for a private key", name)
		}
	}
}
