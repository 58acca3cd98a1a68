package commandstest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// Scenario is a service on a ledger, with a clock that the test sets.
type Scenario struct {
	*commands.Service
	T   testing.TB
	Now time.Time
}

// New returns a Scenario on an empty ledger, at ledgertest.Epoch. When the test ends, the ledger is verified.
func New(t testing.TB) *Scenario {
	t.Helper()
	return On(t, ledgertest.Open(t))
}

// On is New for a ledger that is already open.
func On(t testing.TB, store *ledger.Store) *Scenario {
	s := &Scenario{T: t, Now: ledgertest.Epoch}
	store.Now = func() time.Time { return s.Now }
	s.Service = &commands.Service{Store: store}
	t.Cleanup(s.Verify) // before the store closes
	return s
}

// Numbered makes ids and salts the same in every run: consecutive ids, and salts of ascending bytes.
func (s *Scenario) Numbered() {
	var ids atomic.Int64
	s.NewID = func() string { return fmt.Sprintf("01KDY9FY88TH%014d", ids.Add(1)) }
	s.NewSalt = func(salts []byte) {
		for i := range salts {
			salts[i] = byte(i)
		}
	}
}

// Verify verifies the ledger; see [Verify].
func (s *Scenario) Verify() {
	s.T.Helper()
	Verify(s.T, s.Store)
}

// Verify reports every difference between a ledger's tables and the fold of its events.
func Verify(t testing.TB, store *ledger.Store) {
	t.Helper()
	ctx := context.Background() // that of the test may have ended
	err := store.Read(ctx, func(tx *ledger.Tx) error {
		v, err := audit.Verify(ctx, tx, nil)
		for _, f := range v.Findings {
			t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
}

// Tail returns the pos of the last event.
func (s *Scenario) Tail() (pos int64) {
	s.T.Helper()
	err := s.Store.Read(s.T.Context(), func(tx *ledger.Tx) (err error) {
		pos, err = tx.Tail(s.T.Context())
		return err
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return pos
}
