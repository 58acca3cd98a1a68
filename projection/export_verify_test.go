package projection

import (
	"context"

	"jobledger/ledger"
)

// VerifyHistory is Verify without the structure of the file and its guards.
func VerifyHistory(ctx context.Context, tx *ledger.Tx) (Verified, error) {
	v := newVerifier(tx, 0)
	err := v.history(ctx, nil)
	v.findLost()
	return v.Verified, err
}

// RebuildRows is Rebuild without mending the schema.
func RebuildRows(ctx context.Context, tx *ledger.Tx) (r Rebuilt, err error) {
	s, err := survey(ctx, tx)
	if err != nil {
		return r, err
	}
	return r, r.rows(ctx, tx, s)
}
