package ledger

import "context"

// anyDependency counts up to one row of the table deps.
const anyDependency = `SELECT count(*) FROM (SELECT parent FROM deps ORDER BY parent LIMIT 1) AS d`

// HasDependencies reports whether the table deps has a row, so that the end of a job may concern another one.
// It is read once per transaction, with PostgreSQL in the round trip that begins it, and not again while no
// other process writes.
func (tx *Tx) HasDependencies(ctx context.Context) (bool, error) {
	if tx.waits != nil {
		return *tx.waits, nil
	}
	n := int64(0)
	_, err := tx.first(ctx, []any{&n}, anyDependency)
	if waits := n > 0; err == nil {
		tx.waits = &waits
	}
	return n > 0, err
}

// NoteDependencies says that tx adds a row to the table deps.
func (tx *Tx) NoteDependencies() {
	tx.waits = new(true)
}
