package ledger

import (
	"context"

	"jobledger/ledger/event"
)

// Name returns the number of name in the dictionary, and adds a new name; 0 for a new one in a snapshot. A
// name that stays unused, because the function failed, does no harm.
//
// The rows of the dictionary depend on nothing that is buffered, so these methods send nothing of that.
func (tx *Tx) Name(ctx context.Context, name string) (int64, error) {
	if err := tx.done(); err != nil {
		return 0, err
	}
	n, err := tx.session.Name(tx.queryContext(ctx), name, !tx.readOnly)
	return n, tx.check(err)
}

// Worker returns the number of w in the dictionary, and adds a new worker; 0 for the zero Worker.
func (tx *Tx) Worker(ctx context.Context, w event.Worker) (int64, error) {
	if err := tx.done(); err != nil {
		return 0, err
	}
	n, err := tx.session.Worker(tx.queryContext(ctx), w, !tx.readOnly)
	return n, tx.check(err)
}

// NameOf is the inverse of Name.
func (tx *Tx) NameOf(ctx context.Context, n int64) (string, error) {
	if err := tx.done(); err != nil {
		return "", err
	}
	name, err := tx.session.NameOf(tx.queryContext(ctx), n)
	return name, tx.check(err)
}

// WorkerOf is the inverse of Worker; the zero Worker for 0.
func (tx *Tx) WorkerOf(ctx context.Context, n int64) (event.Worker, error) {
	if err := tx.done(); err != nil {
		return event.Worker{}, err
	}
	w, err := tx.session.WorkerOf(tx.queryContext(ctx), n)
	return w, tx.check(err)
}

// Knows reports whether these names and this worker have their numbers, as far as the connection has seen.
func (tx *Tx) Knows(w event.Worker, names ...string) bool { return tx.session.Knows(w, names...) }
