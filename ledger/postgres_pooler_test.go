package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// In session mode, and with the settings that PgBouncer comes with, a ledger works as without it: wake-ups by
// LISTEN too.
func TestPostgresPoolerInSessionMode(t *testing.T) {
	t.Parallel()
	direct := ledgertest.Postgres(t)
	through := ledgertest.PgBouncer(t, direct, "session")
	one, two := openAt(t, through), openAt(t, with(through, "schema=other"))
	woken, stop := one.Watch()
	defer stop()
	var wg sync.WaitGroup
	for i, s := range []*ledger.Store{one, two, ledgertest.OpenAt(t, through)} {
		wg.Go(func() {
			for range 10 {
				err := s.Write(t.Context(), func(tx *ledger.Tx) error {
					tx.Announce()
					return note(t.Context(), tx, fmt.Sprint("by ", i))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if !wakes(woken, 10*time.Second) {
		t.Error("not woken")
	}
	if here, there := len(actors(t, one)), len(actors(t, two)); here != 20 || there != 10 {
		t.Errorf("%d and %d events, want 20 and 10", here, there)
	}
	if n := len(actors(t, ledgertest.OpenAt(t, direct))); n != 20 {
		t.Errorf("%d events without the pooler, want 20", n)
	}
}

// In the other modes a session may be one that another client has set up, for another ledger.
func TestPostgresPoolerThatChangesSessionsIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			direct := ledgertest.Postgres(t)
			one, two := ledgertest.OpenAt(t, direct), ledgertest.OpenAt(t, with(direct, "schema=other"))
			through := ledgertest.PgBouncer(t, direct, mode)
			var wg sync.WaitGroup
			for _, dsn := range []string{through, with(through, "schema=other"), with(through, "schema=third")} {
				wg.Go(func() {
					for range 5 {
						if s, err := ledger.Open(t.Context(), dsn); !errors.Is(err, ledger.ErrPooled) {
							t.Errorf("%s: got %v, want ErrPooled", dsn, err)
							if err == nil {
								_ = s.Close()
							}
						}
					}
				})
			}
			wg.Wait()
			wantActors(t, one)
			wantActors(t, two)
		})
	}
}

// TestPostgresSessionOfAnotherIsNotUsed: where the pooler went unnoticed, as a session was changed for the
// first time after the ledger was opened, the transaction is given up.
func TestPostgresSessionOfAnotherIsNotUsed(t *testing.T) {
	t.Parallel()
	direct := ledgertest.Postgres(t)
	other := ledgertest.OpenAt(t, with(direct, "schema=other"))
	s := ledgertest.OpenAt(t, direct)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	write(t, s, func(tx *ledger.Tx) error { // what another client of a pooler does in a session that it gets
		_, err := tx.Exec(`SELECT set_config('search_path', 'other', false),
			set_config('jobledger.connection', 'x', false)`)
		return err
	})
	err := s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	if !errors.Is(err, ledger.ErrPooled) {
		t.Errorf("got %v, want ErrPooled", err)
	}
	wantActors(t, s, "a")
	wantActors(t, other)
}
