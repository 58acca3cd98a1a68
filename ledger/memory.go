package ledger

// memory is what the user of a connection of the writer remembers from one transaction to the next, and the pos of the
// last event that is in it.
type memory struct {
	value any
	seen  int64
}

// Recall returns what was remembered in a transaction before this one on the same connection, or nil, and the range of
// events behind after, up to until, that have been committed since and are not in it. In a snapshot nothing is.
func (tx *Tx) Recall() (value any, after, until int64) {
	if tx.readOnly || tx.session.memory.value == nil {
		return nil, 0, 0
	}
	return tx.session.memory.value, tx.session.memory.seen, tx.base
}

// Remember keeps value until this transaction, or one of its functions, or a later one on its connection fails. It must
// have all that was committed when the transaction began, and be told of what is written from here on.
func (tx *Tx) Remember(value any) {
	if !tx.readOnly {
		tx.session.memory = memory{value, tx.base}
	}
}

// Forget drops what is remembered: something is written that it will not be told of.
func (tx *Tx) Forget() { tx.session.memory = memory{} }

// committed adds to what is remembered the events of a transaction that ends at tail, if nothing is missing before them.
func (m *memory) committed(base, tail int64) {
	if m.seen == base {
		m.seen = tail
	}
}
