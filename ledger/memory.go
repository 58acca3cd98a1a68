package ledger

import "jobledger/ledger/internal/engine"

// Memory is a value for Tx.Remember.
type Memory interface {
	// Questions returns what will be asked first by the next who recalls it, where events behind after may be new to it.
	Questions(after int64) []Question
}

// Question is a query with its arguments.
type Question = engine.Question

// memory is what the user of a connection of the writer remembers from one transaction to the next, and the pos of the
// last event that is in it.
type memory struct {
	value    Memory
	seen     int64
	recalled bool            // by the last transaction
	others   int             // for how many more recalls it is expected that others have written meanwhile
	answers  []engine.Answer // to the value's questions, as the transaction began
}

// expected is how long one who has found that others write expects that they do. A worker whom they enqueue for recalls
// twice for each job.
const expected = 8

// questions returns what is asked as a transaction begins, so that it costs no round trip of its own (in a file nothing
// would): nothing if that is likely to be in vain, since others do not write, or since the last transaction had no use for
// it.
func (m *memory) questions() []Question {
	m.answers = nil
	if !m.recalled {
		m.others = 0
	}
	m.recalled = false
	if m.value == nil || m.others == 0 {
		return nil
	}
	return m.value.Questions(m.seen)
}

// Recall returns what was remembered in a transaction before this one on the same connection, or nil, and the range of
// events behind after, up to until, that have been committed since and are not in it. In a snapshot nothing is.
func (tx *Tx) Recall() (value Memory, after, until int64) {
	if tx.Remembered() == nil {
		return nil, 0, 0
	}
	m := &tx.session.memory
	m.recalled = true
	if m.seen < tx.base {
		m.others = expected
	} else if m.others > 0 {
		m.others--
	}
	return m.value, m.seen, tx.base
}

// Remembered returns what Recall does, for who does not bring it up to date.
func (tx *Tx) Remembered() Memory {
	if tx.readOnly {
		return nil
	}
	return tx.session.memory.value
}

// Answered returns the rows of a question that was asked as the transaction began; nil if it was not, or if something has
// been written since.
func (tx *Tx) Answered(query string) *Asked {
	if tx.readOnly || tx.tail != tx.base {
		return nil
	}
	for _, a := range tx.session.memory.answers {
		if a.Query == query {
			return &Asked{tx: tx, query: query, read: a.Read}
		}
	}
	return nil
}

// Remember keeps value until this transaction, or one of its functions, or a later one on its connection fails. It must
// have all that was committed when the transaction began, and be told of what is written from here on.
func (tx *Tx) Remember(value Memory) {
	if !tx.readOnly {
		tx.session.memory.value, tx.session.memory.seen = value, tx.base
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
