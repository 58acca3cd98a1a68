package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"jobledger/commands"
	"jobledger/commands/internal/askrow"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// ErrNoTransaction means that a pool was given. The row would be in a transaction of its own.
var ErrNoTransaction = errors.New("inbox: give a transaction: a *sql.Tx, a *sql.Conn or a pgx.Tx")

// columns are those that a program gives.
const columns = `inbox (id, job, payload) VALUES `

// schema is a PostgreSQL transaction with the name of the schema that has the ledger.
type schema struct {
	tx   any
	name string
}

// In returns tx for [Enqueue] and [EnqueueMany] where the ledger is in another schema of the database than
// jobledger.
func In(tx any, name string) any { return schema{tx, name} }

// Enqueue asks for a new job within tx and returns the id that the job will have. The job comes into the
// ledger after tx has committed, with the next turn of a worker or sweeper; if tx is rolled back, there is
// never a job. If RunAt is not set, the job may run when it comes into the ledger.
//
// tx is a *sql.Tx, a *sql.Conn, or what has the methods of a pgx.Tx. Errors: [commands.ErrInvalid], with
// which tx can go on; [ErrNoTransaction]; those of the database, such as that it has no ledger.
func Enqueue(ctx context.Context, tx any, job commands.Enqueue) (id event.JobID, err error) {
	ids, err := EnqueueMany(ctx, tx, job)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// EnqueueMany is Enqueue for many jobs, a hundred in a statement, and returns their ids in the order of jobs,
// which is also their order in the ledger. It checks all of them before it writes.
func EnqueueMany(ctx context.Context, tx any, jobs ...commands.Enqueue) (ids []event.JobID, err error) {
	in, ok := tx.(schema)
	if !ok {
		in = schema{tx, "jobledger"}
	}
	if isPool(in.tx) {
		return nil, ErrNoTransaction
	}
	conn, err := usertx.Of(in.tx)
	if err != nil {
		return nil, fmt.Errorf("inbox: %w", err)
	}
	into := `INSERT INTO "` + strings.ReplaceAll(in.name, `"`, `""`) + `".` + columns
	ids, err = askrow.Insert(ctx, conn, into, "", jobs)
	if isFile(err) {
		ids, err = enqueueInFile(ctx, conn, jobs)
	}
	if err != nil && !errors.Is(err, commands.ErrInvalid) {
		err = fmt.Errorf("inbox: %w", err)
	}
	return ids, err
}

// isPool reports whether each statement on tx is a transaction of its own.
func isPool(tx any) bool {
	if _, ok := tx.(*sql.DB); ok {
		return true
	}
	_, ok := tx.(interface{ Reset() }) // a *pgxpool.Pool
	return ok
}

// isFile reports whether err is that of SQLite, whichever its driver, for a schema that it does not have. It
// leaves a transaction as it was.
func isFile(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "unknown database") ||
		strings.Contains(err.Error(), "no such table"))
}

// enqueueInFile writes the rows, and has the workers of the file look often for a while, since nothing says
// when the transaction commits.
func enqueueInFile(ctx context.Context, conn usertx.Conn, jobs []commands.Enqueue) (ids []event.JobID,
	err error) {
	if ids, err = askrow.Insert(ctx, conn, `INSERT INTO main.`+columns, "", jobs); err != nil {
		return nil, err
	}
	var path string
	err = conn.Query(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`,
		func(scan func(...any) error) (bool, error) { return false, scan(&path) })
	if err == nil && path != "" {
		ledger.ExpectInbox(path)
	}
	return ids, nil
}
