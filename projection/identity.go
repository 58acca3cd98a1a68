package projection

import (
	"context"
	"encoding/hex"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection/internal/table"
)

// Identity says which ledger it is, and how often what it had recorded became another.
type Identity struct {
	ID       string // see LedgerID
	Restores int64  // how often a backup took its place
	Erasures int64  // of payloads and results of jobs that are in it
}

var countOfKind = event.SQL(`SELECT count(*) FROM events
WHERE kind = ? AND kind > {rareAfter} AND pos <= ?`)

// IdentityOf returns the identity of the ledger as of the event at pos.
func IdentityOf(ctx context.Context, tx *ledger.Tx, pos int64) (is Identity, err error) {
	if is.ID, err = LedgerID(ctx, tx); err != nil {
		return is, err
	}
	err = table.ScanOne(ctx, tx, countOfKind, []any{&is.Restores}, int64(event.KindRestored), pos)
	if err == nil {
		err = table.ScanOne(ctx, tx, countOfKind, []any{&is.Erasures}, int64(event.KindErased), pos)
	}
	return is, err
}

// LedgerID returns the id of the ledger: 32 digits in hex, of the hash of its first event. Copies of it have
// the same id: backups, what import and replay make, standbys. It never changes: where the first event has
// left the ledger, an event removed has the id. It is "" before the first event.
func LedgerID(ctx context.Context, tx *ledger.Tx) (string, error) {
	first, found, err := tx.EventAt(ctx, 1)
	if err != nil {
		return "", err
	}
	if found {
		return shortHash(proof.LeafHash(first.AppendLeaf(nil))), nil
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindRemoved}}) {
		if err != nil {
			return "", err
		}
		if id := e.Body.(*event.Removed).Ledger; id != "" {
			return id, nil
		}
	}
	// It left when such events had no id yet, and with it at least a block.
	blocks, err := tree.StoredBlocks(ctx, tx, 0, 1)
	if err != nil || len(blocks) == 0 {
		return "", err
	}
	return shortHash(blocks[0]), nil
}

func shortHash(h proof.Hash) string { return hex.EncodeToString(h[:16]) }
