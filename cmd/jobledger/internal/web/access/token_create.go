package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// tokenPrefix begins each token, so that a scanner of leaked secrets knows it.
const tokenPrefix = "jlt_"

// idLetters are those of an id: 32, so that a random byte picks one without bias.
const idLetters = "abcdefghijkmnpqrstuvwxyz23456789"

// Request says what a new token is for.
type Request struct {
	Name    string
	Scopes  []Scope
	Queues  []string
	Expires time.Time // zero: never
}

func (r Request) check(now time.Time) error {
	if err := CheckName(r.Name); err != nil {
		return err
	}
	if len(r.Scopes) == 0 || len(r.Queues) == 0 {
		return &commands.InvalidError{Field: "scope", Allowed: "one scope and one queue at least"}
	}
	for _, s := range r.Scopes {
		if _, err := ParseScope(string(s)); err != nil {
			return err
		}
	}
	for _, q := range r.Queues {
		if err := CheckPattern(q); err != nil {
			return err
		}
	}
	if !r.Expires.IsZero() && !r.Expires.After(now) {
		return &commands.InvalidError{Field: "expires", Got: event.FormatTime(r.Expires), Allowed: "after now"}
	}
	return nil
}

// Create makes a token and appends its grant to the file at path, which it makes if there is none. A name
// that is in force already is a [commands.ConflictError].
func Create(path string, r Request, now time.Time) (token string, g Grant, err error) {
	if err := r.check(now); err != nil {
		return "", g, err
	}
	all, err := read(path)
	if err != nil {
		return "", g, err
	}
	for _, e := range all {
		if e.Name == r.Name && e.InForce(now) {
			return "", g, fmt.Errorf("%w: there is a token %q already; revoke it first", commands.ErrConflict, r.Name)
		}
	}
	random := make([]byte, 8+32)
	_, _ = rand.Read(random) // never fails
	id := make([]byte, 8)
	for i := range id {
		id[i] = idLetters[random[i]%byte(len(idLetters))]
	}
	token = tokenPrefix + string(id) + "_" + base64.RawURLEncoding.EncodeToString(random[8:])
	digest := sha256.Sum256([]byte(token))
	r.Scopes, r.Queues = slices.Sorted(slices.Values(r.Scopes)), slices.Sorted(slices.Values(r.Queues))
	l := line{ID: string(id), Name: r.Name, SHA256: hex.EncodeToString(digest[:]),
		Scopes: slices.Compact(r.Scopes), Queues: slices.Compact(r.Queues), Created: event.FormatTime(now)}
	if !r.Expires.IsZero() {
		l.Expires = event.FormatTime(r.Expires)
	}
	g = Grant{ID: l.ID, Name: l.Name, Scopes: l.Scopes, Queues: l.Queues, Created: now, Expires: r.Expires}
	return token, g, appendLine(path, l)
}
