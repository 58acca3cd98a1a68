package cli

import (
	"jobledger/commands/archive"
	"jobledger/ledger"
)

// ArchiveEnv is the environment variable that says where the archive is.
const ArchiveEnv = "JOBLEDGER_ARCHIVE"

// ArchiveFolder returns the folder of the archive of a ledger: the one that was given, or else the one next
// to the ledger's file; "" for a ledger that has none.
func ArchiveFolder(given string, store *ledger.Store) string {
	switch {
	case given != "":
		return given
	case ledger.IsServerAddress(store.DSN()):
		return ""
	}
	return store.Path() + archive.Suffix
}
