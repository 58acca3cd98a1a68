// Package files makes ledgers out of other ledgers and puts them in place: backup, restore, import,
// replay and compact.
//
// Each operation is a function that takes paths, stores and options, and returns data or an error. It prints
// nothing, reads no flags and chooses no exit code, so a test or a server can call it as the verbs of
// jobledger do:
//
//	copied, err := files.Backup(ctx, store, "jobs.bak")
//	restored, err := files.Restore(ctx, files.RestoreOptions{Backup: "jobs.bak", Ledger: "jobs.db"})
//
// All of them follow one rule: the new ledger is written to a temporary file in the folder of its final path,
// made durable, and only then given its name. A crash leaves the old state or the new one, and at most a
// temporary file that 'jobledger doctor' reports.
//
// The package does not copy ledgers in PostgreSQL: pg_dump does. [Replay] can read from one, and [Import] can
// write to one.
//
// Files in reading order:
//
//   - staging.go: the temporary file, and how it gets its name
//   - backup.go: [Backup]
//   - restore.go: [Restore]
//   - precheck.go: the reasons not to replace a ledger
//   - owner_*.go: owner and permissions of the new ledger
//   - import.go: [Import]; lines.go: [Lines], which reads exported JSONL
//   - replay.go: [Replay]
//   - compact.go: [Compact]
//   - errors.go: the errors, which the caller maps to exit codes and hints
//
// Held by TestBackupThenRestore, TestRestoreErrors and TestReplayUntilAPos here, and by
// TestRestoreKilledAtEachStep of the program.
package files
