// Package postgres is the engine of a ledger on a PostgreSQL server: a ledger is a schema of a database.
// Writers of all processes exclude each other with a lock of a table that each holds from its first statement
// to its commit, so that events follow one another as they do in a file: pos is dense, at never decreases,
// and what is visible is complete.
//
// It knows neither events nor jobs; package ledger drives it through the interface of package engine. LISTEN
// and NOTIFY are in package notify.
//
// Files in reading order:
//
//   - address.go, open.go, dial*.go, settings.go: from an address to a connection with its settings
//   - migrate.go: the schema, made and migrated
//   - engine.go, lock.go: transactions and snapshots, and the lock of writers
//   - conn.go, rows.go: one connection, its statements and their rows
//   - pipeline.go: statements that are sent before the results of earlier ones have come; burst.go: a whole
//     transaction in one round trip
//   - sql.go, bulk.go: statements in PostgreSQL's words
//   - errors.go: errors as sentinels
//   - schema.go, inspect.go: checks, repair, and what doctor needs
//
// Held by TestPostgresLockTimeoutIsBusy, TestPostgresOlderWriters,
// TestPostgresOpenEmptyDatabaseByManyStores and TestPostgresKeepsTextAndBytes of package ledger.
package postgres
