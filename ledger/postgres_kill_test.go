package ledger_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// TestPostgresBackendKilled: an administrator, or a server short of memory, ends the backend of a writer. A
// caller whose function was not yet sent with a COMMIT sees no error.
func TestPostgresBackendKilled(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	for name, kill := range map[string]func(t *testing.T, s *ledger.Store, by *pgx.Conn) (acknowledged []string){
		"idle": func(t *testing.T, s *ledger.Store, by *pgx.Conn) []string {
			var pid int64
			write(t, s, func(tx *ledger.Tx) (err error) {
				pid, err = backend(t.Context(), tx)
				return errors.Join(err, note(t.Context(), tx, "a"))
			})
			terminate(t, by, pid)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
			return []string{"a", "b"}
		},
		"waiting for the lock": func(t *testing.T, s *ledger.Store, by *pgx.Conn) []string {
			execute(t, by, `BEGIN`)
			execute(t, by, takeLock)
			answered := make(chan error)
			go func() {
				answered <- s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
			}()
			for range 3 {
				var pids []int64
				eventually(t, "waiting", func() bool { pids = waiting(t, by); return len(pids) == 1 })
				terminate(t, by, pids[0])
			}
			execute(t, by, `COMMIT`)
			if err := <-answered; err != nil {
				t.Errorf("got %v", err)
			}
			return []string{"a"}
		},
		"between two statements": func(t *testing.T, s *ledger.Store, by *pgx.Conn) []string {
			var runs atomic.Int32
			once := killOnce(t, by)
			write(t, s, func(tx *ledger.Tx) error {
				runs.Add(1)
				if err := note(t.Context(), tx, "a"); err != nil {
					return err
				}
				if err := once(tx); err != nil {
					return err
				}
				_, err := number(t.Context(), tx, `SELECT count(*) FROM events`)
				return err
			})
			if runs.Load() != 2 {
				t.Errorf("the function was run %d times, want 2", runs.Load())
			}
			return []string{"a"}
		},
		"between two functions of a group": func(t *testing.T, s *ledger.Store, by *pgx.Conn) []string {
			once := killOnce(t, by)
			act := func(name string, err error) func(*ledger.Tx) error {
				return func(tx *ledger.Tx) error { return errors.Join(note(t.Context(), tx, name), err) }
			}
			kills := func(tx *ledger.Tx) error { return errors.Join(once(tx), note(t.Context(), tx, "c")) }
			errs := writeGroup(t, s, act("a", nil), act("b", errOwn), kills, act("d", nil))
			wantErrors(t, errs, nil, errOwn, nil, nil)
			return []string{"a", "c", "d"}
		},
		"at every attempt": func(t *testing.T, s *ledger.Store, by *pgx.Conn) []string {
			err := s.Write(t.Context(), func(tx *ledger.Tx) error {
				if err := note(t.Context(), tx, "a"); err != nil {
					return err
				}
				if err := killOnce(t, by)(tx); err != nil {
					return err
				}
				_, err := number(t.Context(), tx, `SELECT count(*) FROM events`)
				return err
			})
			if !errors.Is(err, ledger.ErrIO) && !errors.Is(err, ledger.ErrBusy) || errors.Is(err, ledger.ErrUnknown) {
				t.Errorf("got %v, want ErrIO or ErrBusy: it is not done", err)
			}
			return nil
		},
		"before the commit": func(t *testing.T, s *ledger.Store, by *pgx.Conn) []string {
			once := killOnce(t, by)
			err := s.Write(t.Context(), func(tx *ledger.Tx) error {
				return errors.Join(note(t.Context(), tx, "a"),
					once(tx))
			})
			switch {
			case err == nil:
				return []string{"a"}
			case !errors.Is(err, ledger.ErrUnknown):
				t.Errorf("got %v, want nil or ErrUnknown", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := onPostgres(t)
			s.SetGroupTime(time.Hour)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "first") })
			want := append([]string{"first"}, kill(t, s, connect(t, s.DSN()))...)
			wantActors(t, s, want...)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "last") })
			wantActors(t, ledgertest.OpenAt(t, s.DSN()), append(want, "last")...)
		})
	}
}

// killOnce returns a function whose first call ends the backend of its transaction.
func killOnce(t *testing.T, by *pgx.Conn) func(tx *ledger.Tx) error {
	var once sync.Once
	return func(tx *ledger.Tx) (err error) {
		once.Do(func() {
			var pid int64
			if pid, err = backend(t.Context(), tx); err == nil {
				terminate(t, by, pid)
			}
		})
		return err
	}
}

// Connections of the pool that were ended while idle cause no error in a read.
func TestPostgresReadersReconnect(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	by := connect(t, s.DSN())
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	reading, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range 4 { // all connections of the pool
		wg.Go(func() {
			err := s.Read(t.Context(), func(tx *ledger.Tx) error {
				reading <- struct{}{}
				<-release
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 4 {
		<-reading
	}
	close(release)
	wg.Wait()
	if n := ask[int](t, by,
		`SELECT count(pg_terminate_backend(pid))
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
AND pid <> pg_backend_pid()`); n != 5 {
		t.Fatalf("%d connections, want 5", n)
	}
	eventually(t, "gone", func() bool {
		return ask[int](t, by,
			`SELECT count(*)
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`) == 1
	})
	for range 5 {
		wantActors(t, s, "a")
	}
}

// A read whose connection ends half-way returns an error; the next read uses a new connection.
func TestPostgresReadIsCutOff(t *testing.T) {
	s := onPostgres(t)
	by := connect(t, s.DSN())
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		pid, err := backend(t.Context(), tx)
		if err != nil {
			return err
		}
		terminate(t, by, pid)
		_, err = number(t.Context(), tx, `SELECT count(*) FROM events`)
		return err
	})
	if !errors.Is(err, ledger.ErrIO) {
		t.Errorf("got %v, want ErrIO", err)
	}
	wantActors(t, s, "a")
}

// Close leaves no connection open, on either side.
func TestPostgresCloseLeavesNoConnections(t *testing.T) {
	ledgertest.Slow(t)
	dsn := ledgertest.Postgres(t)
	by := connect(t, dsn)
	s, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	woken, stop := s.Watch()
	defer stop()
	announce(t, s)
	if !wakes(woken, 10*time.Second) {
		t.Error("not woken")
	}
	wantActors(t, s, "cli:test")
	// One connection writes, and one listens and notifies. A read has one of its own if that of the writer was
	// busy.
	eventually(t, "connected", func() bool { n := connections(t, by); return n == 2 || n == 3 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "without connections", func() bool { return connections(t, by) == 0 })
	if err := s.Write(context.Background(), func(*ledger.Tx) error { return nil }); !errors.Is(err,
		ledger.ErrClosed) {
		t.Errorf("write after Close: got %v, want ErrClosed", err)
	}
}

// connections returns how many other connections the database has.
func connections(t *testing.T, by *pgx.Conn) int {
	t.Helper()
	return ask[int](t, by,
		`SELECT count(*)
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND backend_type = 'client backend'`)
}
