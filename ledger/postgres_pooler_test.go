package ledger_test

import (
	"context"
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

// TestPostgresPoolerOfOneSession: what takes further connections where there are some does without them:
// reads, reads within reads, those that read ahead and concurrent ones. A panic reaches its caller.
func TestPostgresPoolerOfOneSession(t *testing.T) {
	ledger.ReadAhead(10, t.Cleanup)
	through := ledgertest.PgBouncer(t, ledgertest.Postgres(t), "session", "default_pool_size = 1")
	s := ledgertest.OpenAt(t, through)
	_, stop := s.Watch() // whose connection has no session
	defer stop()
	read := func(fn func(tx *ledger.Tx) error) error {
		start := time.Now()
		err := s.Read(t.Context(), fn)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("it took %s", d)
		}
		return err
	}
	must(t, read(func(tx *ledger.Tx) error { _, err := tx.Tail(t.Context()); return err })) // before a write
	for range 30 {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	}
	events := func(tx *ledger.Tx) (n int, err error) {
		for batch, err := range tx.Scan(t.Context(), ledger.Scan{}) {
			if err != nil {
				return n, err
			}
			n += len(batch)
		}
		return n, nil
	}
	var here, within, another int
	must(t, read(func(tx *ledger.Tx) (err error) {
		if here, err = events(tx); err != nil {
			return err
		}
		wait := tx.ReadConcurrently(t.Context(), func(tx *ledger.Tx) (err error) {
			another, err = events(tx)
			return err
		})
		err = s.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			within, err = events(tx)
			return err
		})
		return errors.Join(err, wait())
	}))
	if here != 30 || within != 30 || another != 30 {
		t.Errorf("%d, %d and %d events, want 30", here, within, another)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = read(func(*ledger.Tx) error { panic("here") })
	}()
	canceled, cancel := context.WithCancel(t.Context())
	if err := read(func(tx *ledger.Tx) error {
		cancel()
		_, err := tx.Query(canceled, "SELECT 1")
		return err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := read(func(tx *ledger.Tx) error { _, err := events(tx); return err }); err != nil {
				t.Error(err)
			}
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
		})
	}
	wg.Wait()
	if n := len(actors(t, s)); n != 38 {
		t.Errorf("%d events, want 38", n)
	}
}

// TestPostgresPoolerWithoutSessions: while others have all sessions of a pooler, what needs one ends with
// ErrNoSession, and works as soon as there is one.
func TestPostgresPoolerWithoutSessions(t *testing.T) {
	direct := ledgertest.Postgres(t)
	through := ledgertest.PgBouncer(t, direct, "session", "default_pool_size = 1")
	holder := ledgertest.OpenAt(t, through)
	ledger.SetSessionWait(300*time.Millisecond, t.Cleanup)
	for what, open := range map[string]func() error{
		"Open":          func() error { _, err := ledger.Open(t.Context(), through); return err },
		"OpenExisting":  func() error { _, err := ledger.OpenExisting(t.Context(), through); return err },
		"Migrate":       func() error { return ledger.Migrate(t.Context(), through) },
		"InspectServer": func() error { return ledger.InspectServer(t.Context(), through, nil) },
	} {
		start := time.Now()
		err := open()
		if d := time.Since(start); !errors.Is(err, ledger.ErrNoSession) || !errors.Is(err, ledger.ErrBusy) ||
			d > 2*time.Second {
			t.Errorf("%s: %v after %s, want ErrNoSession", what, err, d)
		}
	}
	must(t, holder.Close())
	ledger.SetSessionWait(10*time.Second, t.Cleanup)
	write(t, ledgertest.OpenAt(t, through), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	wantActors(t, ledgertest.OpenAt(t, direct), "a")
}
