// Package usertx runs statements in a database of the embedding program, through whatever that program has:
// database/sql or pgx. It knows nothing of ledgers.
//
// Held by TestOutboxWithPgx, TestOutboxMovesCommittedRowsInOrder and TestOnceOfConcurrentAttempts of
// package commands/outbox.
package usertx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a transaction, a connection or a pool of them. Statements have the placeholders $1, $2, …, which
// SQLite and PostgreSQL both know.
type Conn interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(ctx context.Context, statement string, args ...any) (changed int64, err error)

	// Query calls each for the rows of a query until it returns false or an error.
	Query(ctx context.Context, query string, each func(scan func(...any) error) (bool, error)) error
}

// StandardConn is what *sql.DB, *sql.Conn and *sql.Tx have in common.
type StandardConn interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// PgxConn is what pgx.Tx, *pgx.Conn and *pgxpool.Pool have in common.
type PgxConn interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// Of returns conn as a Conn. It returns an error unless conn is a Conn, a StandardConn or a PgxConn.
func Of(conn any) (Conn, error) {
	switch c := conn.(type) {
	case Conn:
		return c, nil
	case StandardConn:
		return standard{c}, nil
	case PgxConn:
		return postgres{c}, nil
	}
	return nil, fmt.Errorf("%T is not a transaction: give a *sql.Tx, *sql.Conn, *sql.DB or pgx.Tx", conn)
}

type standard struct{ StandardConn }

func (c standard) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := c.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c standard) Query(
	ctx context.Context, query string, each func(scan func(...any) error) (bool, error),
) error {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	for more := true; more && rows.Next(); {
		if more, err = each(rows.Scan); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	if err := rows.Err(); err != nil {
		return errors.Join(err, rows.Close())
	}
	return rows.Close()
}

type postgres struct{ PgxConn }

func (c postgres) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := c.PgxConn.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

func (c postgres) Query(
	ctx context.Context, query string, each func(scan func(...any) error) (bool, error),
) error {
	rows, err := c.PgxConn.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more && rows.Next(); {
		if more, err = each(rows.Scan); err != nil {
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// IsPostgres reports whether conn is a connection to PostgreSQL. It causes no error on either engine, because
// that would end a transaction: the two differ in how they make 1.5 an integer.
func IsPostgres(ctx context.Context, conn Conn) (bool, error) {
	if _, ok := conn.(postgres); ok {
		return true, nil
	}
	var n int
	err := conn.Query(ctx, `SELECT CAST(1.5 AS INTEGER)`, func(scan func(...any) error) (bool, error) {
		return false, scan(&n)
	})
	return n == 2, err
}
