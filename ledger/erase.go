package ledger

import (
	"context"

	"jobledger/ledger/event"
)

var bodiesOfJob = event.SQL(`FROM bodies
WHERE pos = ?1 OR pos IN (SELECT pos FROM events WHERE job = ?1 AND kind IN ({succeeded}, {replaced}))`)

// EraseBodiesAt removes the bodies of the events at these positions, as EraseBodies does, and calls also,
// which removes further data that must be overwritten.
func (tx *Tx) EraseBodiesAt(ctx context.Context, positions []int64, also func() error) (count, bytes int64,
	err error) {
	for _, pos := range positions {
		salt, body, ok, err := tx.Body(ctx, pos)
		if err != nil {
			return 0, 0, err
		}
		if ok || salt != nil {
			count++
			bytes += int64(len(body))
		}
	}
	err = tx.session.WithSecureDelete(func() error {
		for _, pos := range positions {
			if _, err := tx.Exec(`DELETE FROM bodies WHERE pos = ?`, pos); err != nil {
				return err
			}
		}
		return also()
	})
	return count, bytes, err
}

// EraseBodies removes the payloads of job n with its salt, and all of its results, and returns how many that
// were and their bytes. The space that they free in the ledger's file is overwritten; Store.Checkpoint then
// takes them out of the -wal file too.
func (tx *Tx) EraseBodies(ctx context.Context, n int64) (count int, bytes int64, err error) {
	_, err = tx.one(ctx, []any{&count, &bytes},
		`SELECT count(*), coalesce(sum(length(body)), 0) `+bodiesOfJob, n)
	if err != nil || count == 0 {
		return 0, 0, err
	}
	err = tx.session.WithSecureDelete(func() error {
		_, err := tx.Exec(`DELETE `+bodiesOfJob, n)
		return err
	})
	return count, bytes, err
}
