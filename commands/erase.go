package commands

import (
	"jobledger/ledger"
	"jobledger/projection"
)

// Erase removes a job's payload, results and salt for good. Its history stays, and says what was removed and why.
type Erase struct{ Reason string }

func erase(j projection.Job, c Erase) ([]ledger.Body, error) {
	switch {
	case j.Erased:
		return nil, errNothing
	case !j.State.Final():
		return nil, conflict(c, j)
	}
	return is(&ledger.Erased{Reason: c.Reason})
}
