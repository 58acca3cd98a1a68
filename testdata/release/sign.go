package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// signer signs a text; nil: there is no key.
type signer func(text []byte) []byte

func readKey(name string) (signer, error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("-key: it is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("-key: %w", err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("-key: %T is not an Ed25519 key", parsed)
	}
	return func(text []byte) []byte { return ed25519.Sign(key, text) }, nil
}

// sums writes SHA256SUMS of all files, and its signature.
func (r *release) sums(sign signer) error {
	entries, err := os.ReadDir(r.out) // sorted by name
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(text), e.Name())
	}
	name := filepath.Join(r.out, "SHA256SUMS")
	if err := os.WriteFile(name, []byte(list.String()), 0o644); err != nil || sign == nil {
		return err
	}
	return os.WriteFile(name+".sig", sign([]byte(list.String())), 0o644)
}
