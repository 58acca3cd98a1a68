package access

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/ownerfile"
)

// PathOf returns where the grants of the ledger in the file db are.
func PathOf(db string) string { return db + ".access" }

// line is one line of the file: a grant, or what happened to it later.
type line struct {
	ID      string   `json:"id"`
	Name    string   `json:"name,omitempty"`
	SHA256  string   `json:"sha256,omitempty"` // of the whole token, in hex
	Scopes  []Scope  `json:"scopes,omitempty"`
	Queues  []string `json:"queues,omitempty"`
	Created string   `json:"created,omitempty"`
	Expires string   `json:"expires,omitempty"`
	Revoked string   `json:"revoked,omitempty"`
	Used    string   `json:"used,omitempty"`
}

// entry is a grant with the digest of its token.
type entry struct {
	Grant
	digest [sha256.Size]byte
}

// List returns all grants of the file, the oldest first; none where there is no file.
func List(path string) ([]Grant, error) {
	all, err := read(path)
	var grants []Grant
	for _, e := range all {
		grants = append(grants, e.Grant)
	}
	return grants, err
}

// Revoke ends the grant with this name or id, which must be in force.
func Revoke(path, nameOrID string, now time.Time) (Grant, error) {
	all, err := read(path)
	if err != nil {
		return Grant{}, err
	}
	for _, e := range all {
		if (e.Name == nameOrID || e.ID == nameOrID) && e.InForce(now) {
			e.Revoked = now
			return e.Grant, appendLine(path, line{ID: e.ID, Revoked: event.FormatTime(now)})
		}
	}
	return Grant{}, &NoTokenError{nameOrID}
}

// NoTokenError means that no token with this name or id is in force.
type NoTokenError struct{ Name string }

// Error says so.
func (e *NoTokenError) Error() string { return fmt.Sprintf("no token %q is in force", e.Name) }

// appendLine adds one line. The write is one call, so that two processes do not mix their lines.
func appendLine(path string, l line) (err error) {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600) // #nosec G304 -- next to the ledger
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := checkMode(f); err != nil {
		return err
	}
	if torn(f) {
		text = append([]byte("\n"), text...)
	}
	if _, err := f.Write(append(text, '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// torn reports whether the last line of f was not written whole, as by a full disk.
func torn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// checkMode returns an error if other users may read or write the file.
func checkMode(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return ownerfile.Check(f.Name(), info)
}

// read returns the grants of the file at path, the oldest first; none where there is no file.
func read(path string) (all []*entry, err error) {
	f, err := os.Open(path) // #nosec G304 -- next to the ledger
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkMode(f); err != nil {
		return nil, err
	}
	byID := make(map[string]*entry)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if !strings.HasSuffix(lines.Text(), "}") {
			continue // it is empty, or was not written whole
		}
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		e := byID[l.ID]
		if e == nil {
			e = new(entry)
			byID[l.ID] = e
			all = append(all, e)
		}
		if err := e.add(l); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
	}
	return all, lines.Err()
}

// add takes in the next line about a grant.
func (e *entry) add(l line) (err error) {
	if l.SHA256 != "" {
		digest, err := hex.DecodeString(l.SHA256)
		if err != nil || len(digest) != len(e.digest) {
			return errors.New("sha256 is not 64 hex digits")
		}
		copy(e.digest[:], digest)
		e.Grant = Grant{ID: l.ID, Name: l.Name, Scopes: l.Scopes, Queues: l.Queues}
	}
	for _, t := range []struct {
		to   *time.Time
		text string
	}{{&e.Created, l.Created}, {&e.Expires, l.Expires}, {&e.Revoked, l.Revoked}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = time.Parse(time.RFC3339, t.text); err != nil {
			return err
		}
	}
	if l.Used > e.Used {
		e.Used = l.Used
	}
	return nil
}
