package ledger

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is what an event says of a body: the hex of SHA-256(salt‖body). The salt keeps a short secret in a
// payload from being guessed out of the history, and goes when the body is erased.
func Digest(salt, body []byte) string {
	h := sha256.New()
	h.Write(salt)
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
