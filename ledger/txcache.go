package ledger

import (
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/engine"
)

// TxCache carries one value from a write transaction to later ones of the same Store, so that they need not
// read it again. The ledger does not know what the value means. It knows which events the value covers, and
// drops the value when a transaction or one of its functions fails.
//
// In a snapshot Tx.Cache returns nil. A nil TxCache is empty and stores nothing. The commit loop alone uses a
// TxCache, so it needs no lock.
type TxCache struct {
	tx         *transaction // the open one
	value      CachedValue
	covers     int64           // the pos of the last event that value includes
	loaded     bool            // by the last transaction
	contention int             // for how many more loads other writers are expected to have appended events
	prefetched []engine.Answer // to the warm-up queries of this transaction

	rare       map[event.Kind]any // what KeepRare keeps
	rareCovers int64              // the pos of the last event that rare includes
}

// CachedValue is what a TxCache holds.
type CachedValue interface {
	// WarmupQueries returns the queries that are likely to follow the next Load, where the value covers the
	// events up to after; alone says that no other process is expected to have appended more. An engine whose
	// queries cost a round trip sends them with the statement that begins the transaction.
	WarmupQueries(after int64, alone bool) []WarmupQuery
}

// WarmupQuery is a query with its arguments.
type WarmupQuery = engine.WarmupQuery

// expectedContention is how many loads a cache expects other writers to go on after it has met one. A worker
// for whom another process enqueues loads twice per job.
const expectedContention = 8

// Cache returns the cache of the Store; nil if tx is a snapshot.
func (tx *Tx) Cache() *TxCache { return tx.cache }

// Load returns the value that an earlier transaction stored, or nil, and the range of the committed events
// that it does not cover: those after the pos after, up to and including until.
func (c *TxCache) Load() (value CachedValue, after, until int64) {
	if c == nil || c.value == nil {
		return nil, 0, 0
	}
	c.loaded = true
	if c.covers < c.tx.base {
		c.contention = expectedContention
	} else if c.contention > 0 {
		c.contention--
	}
	return c.value, c.covers, c.tx.base
}

// Value returns the stored value or nil, without the intent to bring it up to date.
func (c *TxCache) Value() CachedValue {
	if c == nil {
		return nil
	}
	return c.value
}

// Store keeps value for later transactions. It must cover all events that were committed when the transaction
// began, and its owner must add what this transaction and later ones write, or Invalidate it.
func (c *TxCache) Store(value CachedValue) {
	if c != nil {
		c.value, c.covers = value, c.tx.base
	}
}

// Invalidate drops the value. A change that the value does not learn of must call it.
func (c *TxCache) Invalidate() {
	if c != nil {
		*c = TxCache{tx: c.tx}
	}
}

// KeepRare keeps value, which is derived from the events of a rare kind, until another event of this kind may
// have come. It must cover what the transaction sees now.
func (c *TxCache) KeepRare(k event.Kind, value any) {
	if c == nil {
		return
	}
	if c.rare == nil || c.rareCovers != c.tx.base {
		c.rare, c.rareCovers = make(map[event.Kind]any), c.tx.base
	}
	c.rare[k] = value
}

// Rare returns what KeepRare keeps for a kind; ok is false if that is nothing, even if another writer has
// appended events since.
func (c *TxCache) Rare(k event.Kind) (value any, ok bool) {
	if c == nil || c.rareCovers != c.tx.base {
		return nil, false
	}
	value, ok = c.rare[k]
	return value, ok
}

// Prefetched returns the rows of a warm-up query of this transaction; nil if it was not sent, or if something
// has been written since.
func (c *TxCache) Prefetched(query string) *PendingQuery {
	if c == nil || c.tx.tail != c.tx.base {
		return nil
	}
	for _, a := range c.prefetched {
		if a.Query == query {
			return &PendingQuery{tx: c.tx.running, query: query, read: a.Read}
		}
	}
	return nil
}

// longRoundTrip is from when on a round trip costs more than a query that is not used. One to the same host
// takes less.
const longRoundTrip = time.Millisecond

// warmup returns the queries to send as a transaction begins: none where they are likely to be useless,
// because the last transaction did not load the value, or because no other process writes and round trips are
// short.
func (c *TxCache) warmup(farAway bool) []WarmupQuery {
	c.prefetched = nil
	loaded := c.loaded
	if c.loaded = false; !loaded {
		c.contention = 0
	}
	alone := c.contention == 0
	if c.value == nil || !loaded || alone && !farAway {
		return nil
	}
	return c.value.WarmupQueries(c.covers, alone)
}

// begin attaches the cache to the transaction that has just begun.
func (c *TxCache) begin(tx *Tx) {
	c.tx, tx.cache = tx.transaction, c
}

// committed notes that the value covers the events of a transaction that began at base and ended at tail,
// unless it lacks earlier ones.
func (c *TxCache) committed(base, tail int64) {
	if c.covers == base {
		c.covers = tail
	}
	if c.rareCovers == base {
		c.rareCovers = tail
	}
}
