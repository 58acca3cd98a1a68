package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"os"
	"strings"
	"sync"
	"time"
)

// ErrBad means that a text is not a token that is in force. It does not say why.
var ErrBad = errors.New("the token is not valid")

// Keys finds the grants of tokens in a file. It is safe for concurrent use.
type Keys struct {
	Path string // "": there are no tokens

	mu    sync.Mutex
	stamp stamp
	byID  map[string]*entry
	named map[string]*entry // the newest of each name: of those, only it may be in force
}

// stamp is how one state of a file differs from another.
type stamp struct {
	size int64
	at   time.Time
}

// Find returns the grant of token: ErrBad if it is not in force at now. It reads the file again if it has
// changed.
func (k *Keys) Find(token string, now time.Time) (Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refresh(); err != nil {
		return Grant{}, err
	}
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	id, _, cut := strings.Cut(rest, "_")
	e := k.byID[id]
	var digest, want [sha256.Size]byte
	if digest = sha256.Sum256([]byte(token)); e != nil {
		want = e.digest
	}
	if subtle.ConstantTimeCompare(digest[:], want[:]) != 1 || !ok || !cut || e == nil || !e.InForce(now) {
		return Grant{}, ErrBad
	}
	return k.used(e, now), nil
}

// Named returns the grant of this name, for a caller who has proved its identity without the token: ErrBad if
// no such token is in force at now.
func (k *Keys) Named(name string, now time.Time) (Grant, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refresh(); err != nil {
		return Grant{}, err
	}
	e := k.named[name]
	if e == nil || !e.InForce(now) {
		return Grant{}, ErrBad
	}
	return k.used(e, now), nil
}

// used records that e is used at now, and returns it.
func (k *Keys) used(e *entry, now time.Time) Grant {
	if day := now.UTC().Format(time.DateOnly); day > e.Used {
		e.Used = day
		// A disk without room is not a reason to refuse: the day is written the next time.
		if appendLine(k.Path, line{ID: e.ID, Used: day}) != nil {
			e.Used = ""
		}
	}
	return e.Grant
}

func (k *Keys) refresh() error {
	if k.Path == "" {
		return nil
	}
	info, err := os.Stat(k.Path)
	if errors.Is(err, os.ErrNotExist) {
		k.byID, k.named, k.stamp = nil, nil, stamp{}
		return nil
	}
	if err != nil {
		return err
	}
	now := stamp{info.Size(), info.ModTime()}
	if k.byID != nil && now == k.stamp {
		return nil
	}
	all, err := read(k.Path)
	if err != nil {
		return err
	}
	k.stamp, k.byID, k.named = now, make(map[string]*entry, len(all)), make(map[string]*entry, len(all))
	for _, e := range all {
		k.byID[e.ID] = e
		k.named[e.Name] = e
	}
	return nil
}
