package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

// ErrInvalid is wrapped by the errors of a checkpoint or proof that cannot be read, or does not hold.
var ErrInvalid = errors.New("invalid evidence")

// Checkpoint says what the tree of a ledger is.
type Checkpoint struct {
	Origin string // the name of the ledger
	Size   int64  // how many events are in it
	Root   Hash
}

// maxOrigin is how many bytes the name of a ledger may have.
const maxOrigin = 255

// CheckOrigin returns an error unless name can name a ledger, and a key: up to 255 bytes of UTF-8 without
// spaces, control characters and plus signs.
func CheckOrigin(name string) error {
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '+' }
	if name == "" || len(name) > maxOrigin || !utf8.ValidString(name) || strings.ContainsFunc(name, bad) {
		return fmt.Errorf(
			"the name %.60q; it takes 1 to %d bytes of UTF-8 without spaces, control characters and +",
			name, maxOrigin)
	}
	return nil
}

// text is what is signed: three lines.
func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// Sign returns the text of c with a signature by each of the private keys, which [GenerateKey] made. Without
// keys the text is not signed: it ends with an empty line.
func (c Checkpoint) Sign(keys ...string) ([]byte, error) {
	if err := CheckOrigin(c.Origin); err != nil {
		return nil, err
	}
	var signers []note.Signer
	for _, key := range keys {
		signer, err := note.NewSigner(strings.TrimSpace(key))
		if err != nil {
			return nil, errors.New("a private key that cannot be read; it begins with PRIVATE+KEY+")
		}
		signers = append(signers, signer)
	}
	return note.Sign(&note.Note{Text: c.text()}, signers...)
}

// ParseCheckpoint reads the text of a checkpoint and checks that it is signed by each of the public keys.
// Other signatures are left alone. Errors wrap [ErrInvalid].
func ParseCheckpoint(text []byte, keys ...string) (c Checkpoint, err error) {
	body, signatures, ok := bytes.Cut(text, []byte("\n\n"))
	if !ok {
		return c, fmt.Errorf("%w: a checkpoint has three lines and an empty one, then signatures", ErrInvalid)
	}
	if c, err = parseText(string(body)); err != nil {
		return c, err
	}
	if len(signatures) == 0 && len(keys) > 0 {
		return c, fmt.Errorf("%w: the checkpoint is not signed", ErrInvalid)
	}
	for line := range bytes.Lines(signatures) { // one signature has one text, and nothing else follows
		rest, marked := strings.CutPrefix(string(line), signatureMark)
		name, encoded, _ := strings.Cut(rest, " ")
		encoded, whole := strings.CutSuffix(encoded, "\n")
		_, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !marked || !whole || name == "" || encoded == "" || err != nil {
			return c, fmt.Errorf("%w: the signature %.60q", ErrInvalid, line)
		}
	}
	for _, key := range keys {
		verifier, err := note.NewVerifier(strings.TrimSpace(key))
		if err != nil {
			return c, fmt.Errorf("the public key %.80q cannot be read; it has the form NAME+HASH+KEY", key)
		}
		if _, err := note.Open(text, note.VerifierList(verifier)); err != nil {
			return c, fmt.Errorf("%w: the checkpoint is not signed by %s: %w", ErrInvalid, verifier.Name(), err)
		}
	}
	return c, nil
}

// parseText reads the lines of a checkpoint without the line feed of the last. Further lines are extensions,
// which a ledger never writes.
func parseText(body string) (c Checkpoint, err error) {
	lines := strings.Split(body, "\n")
	if len(lines) != 3 {
		return c, fmt.Errorf("%w: a checkpoint has three lines, not %d", ErrInvalid, len(lines))
	}
	if err := CheckOrigin(lines[0]); err != nil {
		return c, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	c.Origin = lines[0]
	c.Size, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || c.Size < 0 || strconv.FormatInt(c.Size, 10) != lines[1] {
		return c, fmt.Errorf("%w: the size %.40q is not a number of events", ErrInvalid, lines[1])
	}
	if c.Root, err = parseHash(lines[2]); err != nil {
		return c, fmt.Errorf("%w: the root %.60q is not a hash in base64", ErrInvalid, lines[2])
	}
	return c, nil
}

func parseHash(text string) (h Hash, err error) {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && len(b) != len(h) {
		err = errors.New("a hash has 32 bytes")
	}
	copy(h[:], b)
	return h, err
}

// GenerateKey returns a new pair of keys, Ed25519, as the texts in which they are kept. name is that of the
// signer, most often the ledger's.
func GenerateKey(name string) (private, public string, err error) {
	if err := CheckOrigin(name); err != nil {
		return "", "", err
	}
	return note.GenerateKey(rand.Reader, name)
}

// CheckKey returns an error unless text is a public key, NAME+HASH+KEY.
func CheckKey(text string) error {
	_, err := note.NewVerifier(text)
	return err
}

// PublicKey returns the public key of a private one.
func PublicKey(private string) (public string, err error) {
	parts := strings.SplitN(strings.TrimSpace(private), "+", 5) // PRIVATE+KEY+NAME+HASH+KEY
	bad := errors.New("a private key that cannot be read; it begins with PRIVATE+KEY+")
	if _, err := note.NewSigner(strings.TrimSpace(private)); err != nil || len(parts) != 5 {
		return "", bad
	}
	key, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(key) != 1+32 {
		return "", bad
	}
	return note.NewEd25519VerifierKey(parts[2], ed25519.NewKeyFromSeed(key[1:]).Public().(ed25519.PublicKey))
}
