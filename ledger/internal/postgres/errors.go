package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/internal/engine"
)

// notRetryable hides ErrRetry: once COMMIT has been sent, the transaction must not run again.
type notRetryable struct{ error }

func (e notRetryable) Is(target error) bool {
	return target != engine.ErrRetry && errors.Is(e.error, target)
}

// explainConnect says in one line why there is no connection. pgx reports every address that it tried, with
// and without TLS.
func explainConnect(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explain(e)
	}
	lines := strings.Split(err.Error(), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if strings.Contains(last, "failed to receive message: timeout") {
		last += " (it hangs, or is a pooler that has no session for this database)"
	}
	return fmt.Errorf("%w: the server cannot be reached: %s", engine.ErrIO, last)
}

// explain wraps an error of PostgreSQL in the sentinel that callers branch on, once.
func explain(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{engine.ErrBusy, engine.ErrFull, engine.ErrIO, engine.ErrReadOnly,
		engine.ErrConflict, engine.ErrDamaged, engine.ErrUnknown, engine.ErrAddress, engine.ErrNoLedger,
		engine.ErrNotALedger, engine.ErrPooled, engine.ErrOlderSchema, engine.ErrNewerSchema,
		fs.ErrPermission, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%w: the server accepts data and does not answer: its process may hang: %w",
				engine.ErrIO, err)
		}
		return fmt.Errorf("%w: %w", engine.ErrIO, err) // of the connection
	}
	// https://www.postgresql.org/docs/current/errcodes-appendix.html
	if strings.Contains(e.Message, "statement pooling mode") { // PgBouncer has no code for it
		return fmt.Errorf("%w (%w)", errPooled, err)
	}
	if strings.Contains(e.Message, "query_wait_timeout") || strings.Contains(e.Message, "max_client_conn") {
		return fmt.Errorf("%w: %w", engine.ErrNoSession, err)
	}
	switch e.Code {
	case "23505", "JL001", "JL002": // JL001: a guard; JL002: give_up
		return fmt.Errorf("%w: %w", engine.ErrConflict, err)
	case "55P03", "53300": // no lock in time; too many connections
		return fmt.Errorf("%w: %w", engine.ErrBusy, err)
	case "53100":
		return fmt.Errorf("%w: %w", engine.ErrFull, err)
	case "26000", "42P05": // a prepared statement is not there, or is there already
		return fmt.Errorf("%w (%w)", errPooled, err)
	case "25006", "42501":
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, err)
	case "3D000": // no such database
		return fmt.Errorf("%w: %w", engine.ErrNoLedger, err)
	case "22P02", "22P05", "22030", "22032", "42P01", "42703": // invalid JSON, a missing table or column
		return fmt.Errorf("%w: %w", engine.ErrDamaged, err)
	}
	switch e.Code[:2] {
	case "40": // a deadlock or a serialization failure
		return fmt.Errorf("%w: %w", engine.ErrRetry, err)
	case "08", "57", "58": // the connection, an operator, the system
		return fmt.Errorf("%w: %w", engine.ErrIO, err)
	}
	return err
}
