package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// withoutRedo hides that the transaction may be done again: it may not, once COMMIT has been sent.
type withoutRedo struct{ error }

func (e withoutRedo) Is(target error) bool { return target != errRedo && errors.Is(e.error, target) }

// explainConnect says in one line why there is no connection. pgx tells of every address that it tried, with and without
// TLS.
func explainConnect(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainPostgres(e)
	}
	lines := strings.Split(err.Error(), "\n")
	return fmt.Errorf("%w: the server cannot be reached: %s", ErrIO, strings.TrimSpace(lines[len(lines)-1]))
}

// explainPostgres wraps an error of PostgreSQL in the sentinel that callers branch on, once.
func explainPostgres(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{ErrBusy, ErrFull, ErrIO, ErrReadOnly, ErrConflict, ErrDamaged, ErrUnknown, ErrAddress, ErrNoLedger, ErrNotALedger,
		ErrNewerSchema, fs.ErrPermission, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrIO, err) // of the connection
	}
	// https://www.postgresql.org/docs/current/errcodes-appendix.html
	switch e.Code {
	case "22012", "23505", "JL001": // a compare-and-swap that lost divides by zero
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case "55P03", "53300": // the lock did not come; too many connections
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case "53100":
		return fmt.Errorf("%w: %w", ErrFull, err)
	case "25006", "42501":
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case "3D000": // no such database
		return fmt.Errorf("%w: %w", ErrNoLedger, err)
	case "22P02", "22P05", "22030", "22032", "42P01", "42703": // text that is no JSON, a table or a column that is missing
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch e.Code[:2] {
	case "40": // a deadlock, or another's write came first
		return fmt.Errorf("%w: %w", errRedo, err)
	case "08", "57", "58": // the connection, an operator, the system
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	return err
}
