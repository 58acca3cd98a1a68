package ledger_test

import (
	"errors"
	"testing"

	"jobledger/ledger"
)

// The statements are correct, so an error that the database reports for one of them means damage.
func TestDamageErrorsAreClassified(t *testing.T) {
	s := open(t)
	for _, query := range []string{
		`SELECT json('{') ->> 'queue'`,
		`SELECT no_such FROM events`,
		`SELECT 1 FROM nowhere`,
	} {
		err := s.Read(t.Context(), func(tx *ledger.Tx) error {
			_, err := number(t.Context(), tx, query)
			return err
		})
		if !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", query, err)
		}
	}
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		_, err := number(t.Context(), tx, `SELECT 'text'`)
		return err
	})
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("text for a number: got %v, want ErrDamaged", err)
	}
}
