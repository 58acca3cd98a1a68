package ledger

import "context"

// QuerySent is QueryState without the rows that wait to be sent: they stay in the buffers. Unsent says
// whether one of them could matter.
func (tx *Tx) QuerySent(ctx context.Context, query string, args ...any) (*Rows, error) {
	return tx.queryAfter(ctx, func() error { return tx.err }, query, args)
}

// Unsent reports whether a row that waits to be sent has text as one of its values; events do not count.
func (tx *Tx) Unsent(text string) bool {
	for _, b := range tx.buffers {
		if b.ordered {
			continue
		}
		for _, a := range b.args {
			if s, ok := a.(string); ok && s == text {
				return true
			}
		}
	}
	return false
}
