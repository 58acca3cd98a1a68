package projection

import (
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/internal/table"
)

// Statements returns the statements of the hot path as they are sent, by purpose. The compare-and-swaps are
// those of the transitions that have happened in this process.
func Statements() map[string]string {
	all := map[string]string{
		"get":         byID,
		"get by key":  byKey,
		"newest":      newest,
		"last exits":  lastExits + `?)`,
		"held":        held,
		"expired":     expired,
		"result":      resultOf,
		"lost claims": lostClaimsInOrder,
		"lost claim":  lostClaimOfJob,
		"surviving":   survivingClaims,
	}
	updates.Range(func(key, list any) bool {
		one, many := ledgertest.SQLiteStatements(list.(*ledger.BulkStmt))
		all[fmt.Sprintf("put one %x", key)] = one
		all[fmt.Sprintf("put many %x", key)] = many
		return true
	})
	return all
}

// ExitIs is the condition of List for exit codes.
var ExitIs = exitIs

// HostIs is the condition of List for hosts.
var HostIs = hostIs

// ByAnyKey is the statement of FindByKey.
var ByAnyKey = byAnyKey

// Columns are those of the table jobs.
func Columns() []string { return table.Columns[:] }
