package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// In the other modes a session may be one that another client has set up, for another ledger. It is nearly
// always noticed as the ledger is opened, and where it is not, no event gets into another ledger.
func TestPostgresPoolerThatChangesSessionsIsRefused(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			direct := ledgertest.Postgres(t)
			one, two := ledgertest.OpenAt(t, direct), ledgertest.OpenAt(t, with(direct, "schema=other"))
			through := ledgertest.PgBouncer(t, direct, mode)
			const opens = 5
			var wg sync.WaitGroup
			var refused atomic.Int64
			var written [3][]string // the actors of what was written, by schema
			for i, dsn := range []string{through, with(through, "schema=other"), with(through, "schema=third")} {
				wg.Go(func() {
					for range opens {
						s, err := ledger.Open(t.Context(), dsn)
						if err == nil {
							actor := fmt.Sprint("by ", i)
							if err = s.Write(t.Context(), func(tx *ledger.Tx) error {
								return note(t.Context(), tx, actor)
							}); err == nil {
								written[i] = append(written[i], actor)
							}
							_ = s.Close()
						}
						if errors.Is(err, ledger.ErrPooled) {
							refused.Add(1)
						} else if err != nil {
							t.Errorf("%s: got %v, want ErrPooled", dsn, err)
						}
					}
				})
			}
			wg.Wait()
			if n := refused.Load(); n < 2*opens {
				t.Errorf("%d of %d were refused", n, 3*opens)
			}
			wantActors(t, one, written[0]...)
			wantActors(t, two, written[1]...)
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
