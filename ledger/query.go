package ledger

import (
	"cmp"
	"context"
	"database/sql/driver"

	"jobledger/ledger/internal/engine"
)

// Query runs a SELECT after everything that was written before it. Other queries may run before the caller
// closes the rows.
func (tx *Tx) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	return tx.queryAfter(ctx, tx.flush, query, args)
}

// QueryState is Query for a SELECT that does not read events, so that buffered events need not be sent yet.
func (tx *Tx) QueryState(ctx context.Context, query string, args ...any) (*Rows, error) {
	return tx.queryAfter(ctx, tx.flushState, query, args)
}

// QuerySent is QueryState without the rows that wait to be sent: they stay in the buffers. Unsent reports
// whether one of the unsent rows could matter.
func (tx *Tx) QuerySent(ctx context.Context, query string, args ...any) (*Rows, error) {
	return tx.queryAfter(ctx, func() error { return cmp.Or(tx.done(), tx.err) }, query, args)
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

// Each runs a query, after everything that was written before it, and calls fn for each row until fn returns
// false. The values are int64, string, []byte (nil for an empty one) and nil. fn may keep them, but not the
// slice.
func (tx *Tx) Each(ctx context.Context, fn func(row []driver.Value) bool, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if !fn(rows.Values()) {
			return nil
		}
	}
	return rows.Err()
}

// PendingQuery is a query that has been sent and whose rows are read later.
type PendingQuery struct {
	tx    *Tx
	query string
	args  []any
	read  engine.ReadRows // nil: it has not been sent
}

// Prefetch sends a query like QueryState does and does not wait for its rows, so that a database server finds
// them concurrently. Nothing that changes them may be written before Rows is called.
func (tx *Tx) Prefetch(query string, args ...any) (*PendingQuery, error) {
	p := &PendingQuery{tx: tx, query: query, args: args}
	err := tx.flushState()
	if err == nil {
		p.read, err = tx.session.Prefetch(query, args)
		err = tx.check(tx.session.Check(err))
	}
	return p, err
}

// Rows waits for the rows; the caller closes them.
func (p *PendingQuery) Rows(ctx context.Context) (*Rows, error) {
	if err := p.tx.done(); err != nil {
		return nil, err
	}
	if p.read == nil {
		return p.tx.QueryState(ctx, p.query, p.args...)
	}
	rows, row, err := p.read()
	found, err := p.tx.session.RowsOf(context.Background(), rows, row, err)
	return found, p.tx.check(err)
}

func (tx *Tx) queryAfter(ctx context.Context, flush func() error, query string, args []any) (*Rows, error) {
	if err := cmp.Or(flush(), ctx.Err()); err != nil {
		return nil, err
	}
	return tx.ask(ctx, query, args...)
}

// ask is Query without sending the buffers.
func (tx *Tx) ask(ctx context.Context, query string, args ...any) (*Rows, error) {
	if err := tx.done(); err != nil {
		return nil, err
	}
	rows, err := tx.session.Query(tx.queryContext(ctx), query, args...)
	return rows, tx.check(err)
}

// first reads the first row of a query into dest, without sending the buffers.
func (tx *Tx) first(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	if err := tx.done(); err != nil {
		return false, err
	}
	found, err = tx.session.First(tx.queryContext(ctx), dest, query, args...)
	return found, tx.check(err)
}

// one reads the first row of a query into dest, after everything that was written before it.
func (tx *Tx) one(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	if err := cmp.Or(tx.flush(), ctx.Err()); err != nil {
		return false, err
	}
	return tx.first(ctx, dest, query, args...)
}

// queryContext returns ctx in a snapshot. Statements of the writer are short and are not interrupted.
func (tx *Tx) queryContext(ctx context.Context) context.Context {
	if tx.readOnly {
		return ctx
	}
	return context.Background()
}

// Text returns a text of a row as either engine has it; "": there is none.
func Text(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}
