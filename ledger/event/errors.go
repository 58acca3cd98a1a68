package event

import "errors"

// Errors that callers branch on. Package ledger has them under the same names.
var (
	ErrUnknownKind = errors.New("ledger: unknown event kind") // written by a newer program, or damaged
	// stored bytes that no version of this program could have written
	ErrDamaged = errors.New("ledger: damaged")
)
