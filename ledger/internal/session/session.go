// Package session is a connection to the database of a ledger, with what was learned on it about the names
// in the ledger, and the pool of the connections for reading. It knows neither transactions nor events.
//
//	pool := session.NewPool(false)
//	end, err := pool.Begin(ctx, quit)
//	...
//	s := pool.Take() // nil: open one
//	name, err := s.NameOf(ctx, 7)
//
// Files in reading order: session.go, dictionary.go (names and workers by number), pool.go.
//
// Held by TestDictionaryForgetsRolledBackNames, TestReadPanicAndGoexitGiveTheConnectionBack and
// TestPostgresReadersReconnect of package ledger.
package session

import "jobledger/ledger/internal/engine"

// Session is a connection, and what was learned on it about the names in the ledger. One goroutine uses it
// at a time.
type Session struct {
	*engine.Session
	dictionary
}

// New returns the Session of a connection on which nothing was learned yet.
func New(on *engine.Session) *Session { return &Session{Session: on} }
