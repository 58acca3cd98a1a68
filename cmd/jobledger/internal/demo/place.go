package demo

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
)

// makeRoom makes sure that there is no ledger at DB. It removes the one of an earlier demo if it may. It
// removes nothing that is not a ledger.
func (d *demo) makeRoom(ctx context.Context) error {
	if ledger.IsServerAddress(d.DB) {
		return d.checkServer(ctx)
	}
	if _, err := os.Stat(d.DB); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !d.Force {
		return failf(ErrExists, "%s is there already", d.DB)
	}
	store, err := ledger.OpenExisting(ctx, d.DB)
	if err != nil && !errors.Is(err, ledger.ErrNoLedger) {
		return err
	}
	if store != nil {
		if err := store.Close(); err != nil {
			return err
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".bell", ".logs"} {
		if err := os.RemoveAll(d.DB + suffix); err != nil {
			return err
		}
	}
	return os.RemoveAll(attemptlog.Folder(d.DB))
}

// checkServer makes sure that a ledger in PostgreSQL has no events. A demo removes nothing on a server.
func (d *demo) checkServer(ctx context.Context) error {
	store, err := ledger.OpenExisting(ctx, d.DB)
	if errors.Is(err, ledger.ErrNoLedger) {
		return nil // making it shows whether the database exists
	}
	if err != nil {
		return err
	}
	defer store.Close()
	tail, err := ledger.Read(ctx, store, func(tx *ledger.Tx) (int64, error) { return tx.Tail(ctx) })
	if err == nil && tail > 0 {
		err = failf(ErrExists, "%s has events already; it was not touched", d.ShownDB)
	}
	return err
}
