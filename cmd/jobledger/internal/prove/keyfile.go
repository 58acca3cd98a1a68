package prove

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"jobledger/ledger/ownerfile"
	"jobledger/ledger/proof"
)

// ErrReadable means that others may read the file of a private key.
var ErrReadable = errors.New("others can read this private key")

// PrivatePrefix is how the text of a private key begins.
const PrivatePrefix = "PRIVATE+KEY+"

// maxKey is how large the file of a key may be, in bytes. A key has some 100 bytes and its name.
const maxKey = 4096

// PrivateKey returns the private key in the file at path. Errors: ErrReadable if users other than its owner
// may read the file; those of the file; one that says that it holds no private key.
func PrivateKey(path string) (string, error) {
	text, info, err := readKey(path)
	if err != nil {
		return "", err
	}
	if _, err := proof.PublicKey(text); err != nil {
		return "", fmt.Errorf("%s holds no private key; 'jobledger seal keygen' makes one", path)
	}
	if err := ownerfile.Check(path, info); err != nil {
		return "", fmt.Errorf("%w: %w", ErrReadable, err)
	}
	return text, nil
}

// PublicKey returns the public key in the file at path, which holds it or its private key. Errors: those
// of PrivateKey.
func PublicKey(path string) (string, error) {
	text, _, err := readKey(path)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(text, PrivatePrefix) {
		if text, err = PrivateKey(path); err != nil {
			return "", err
		}
		return proof.PublicKey(text)
	}
	if proof.CheckKey(text) != nil {
		return "", fmt.Errorf("%s holds no public key NAME+HASH+KEY, as 'jobledger seal keygen' says it", path)
	}
	return text, nil
}

// Holds reports whether the file at path holds a private key. A file that cannot be read holds none.
func HoldsKey(path string) bool {
	text, _, err := readKey(path)
	return err == nil && strings.HasPrefix(text, PrivatePrefix)
}

// Write makes the file at path, which must not exist, with this private key, for its owner only.
func WriteKey(path, private string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user's file
	if err != nil {
		return err
	}
	_, err = file.WriteString(private + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// read returns the text in the file at path, without space around it, and what the system says of that file.
func readKey(path string) (text string, info os.FileInfo, err error) {
	file, err := os.Open(path) // #nosec G304 -- the user's file
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	info, err = file.Stat()
	if err != nil {
		return "", nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, maxKey))
	return string(bytes.TrimSpace(b)), info, err
}
