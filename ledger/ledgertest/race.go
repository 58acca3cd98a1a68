//go:build race

package ledgertest

// raced says that the race detector is on.
const raced = true
