package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// TestMain lets this test binary run as a further process that opens a ledger.
func TestMain(m *testing.M) {
	if path := os.Getenv("LEDGER_TEST_OPEN"); path != "" {
		if err := openAndWrite(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv("LEDGER_TEST_QUEUE"); path != "" {
		if err := holdWriteQueue(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv("LEDGER_TEST_CHURN"); path != "" {
		if err := comeAndGo(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openAndWrite waits until stdin ends, opens the ledger and appends an event.
func openAndWrite(path string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := ledger.Open(ctx, path)
	if err != nil {
		return err
	}
	if err := s.Write(ctx, func(tx *ledger.Tx) error {
		return note(ctx, tx, fmt.Sprint("cli:", os.Getpid()))
	}); err != nil {
		return err
	}
	return s.Close()
}

// comeAndGo opens the ledger, appends an event and closes it, repeatedly until stdin ends, and prints the
// actor of each acknowledged event.
func comeAndGo(path string) error {
	var end atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end.Store(true)
	}()
	ctx := context.Background()
	for n := 0; !end.Load(); n++ {
		start := time.Now()
		s, err := ledger.OpenExisting(ctx, path)
		if errors.Is(err, ledger.ErrReplaced) || errors.Is(err, ledger.ErrBusy) {
			continue
		}
		if err != nil {
			return err
		}
		actor := fmt.Sprintf("cli:%d-%d", os.Getpid(), n)
		err = s.Write(ctx, func(tx *ledger.Tx) error { return note(ctx, tx, actor) })
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
		switch {
		case err == nil:
			fmt.Println(actor)
		case !errors.Is(err, ledger.ErrReplaced) && !errors.Is(err, ledger.ErrBusy):
			return err
		}
		// otherwise some process would always have the ledger open
		time.Sleep(2*time.Since(start) + rand.N(20*time.Millisecond))
	}
	return nil
}

// holdWriteQueue holds the lock of the write queue until stdin ends.
func holdWriteQueue(path string) error {
	if !ledger.HoldWriteQueue(path) {
		return errors.New("the turn did not come")
	}
	fmt.Println("held")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// open returns a new ledger, which is checked when the test ends.
func open(t testing.TB) *ledger.Store {
	t.Helper()
	return openAt(t, ledgertest.Empty(t))
}

func openAt(t testing.TB, path string) *ledger.Store {
	t.Helper()
	s := ledgertest.OpenAt(t, path)
	t.Cleanup(func() { sound(t, s) }) // runs before the store is closed
	return s
}

// sound checks the invariants that the store keeps: pos has no gaps, at never decreases, every event can be
// read, and the database passes its integrity check.
func sound(t testing.TB, s *ledger.Store) {
	t.Helper()
	ctx := context.Background() // the context of the test is already cancelled
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		problems, err := tx.Integrity(ctx)
		if err != nil {
			return err
		}
		more, err := tx.Guards(ctx)
		if err != nil {
			return err
		}
		for _, p := range append(problems, more...) {
			t.Errorf("the ledger is damaged: %s", p)
		}
		var last event.Event
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			if e.Pos != last.Pos+1 || e.At.Before(last.At) {
				t.Errorf("event %d at %s follows on event %d at %s", e.Pos, e.At, last.Pos, last.At)
			}
			last = e
		}
		return nil
	})
	if err != nil && !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("the ledger cannot be read: %v", err)
	}
}

// note appends an event that concerns no job.
func note(ctx context.Context, tx *ledger.Tx, actor string) error {
	return tx.Append(ctx, event.Event{Pos: tx.Next(), At: tx.At(), Actor: actor,
		Body: &event.QueuePaused{Queue: "mail", Reason: actor}})
}

func write(t testing.TB, s *ledger.Store, fn func(tx *ledger.Tx) error) {
	t.Helper()
	if err := s.Write(t.Context(), fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func read(t testing.TB, s *ledger.Store, fn func(tx *ledger.Tx) error) {
	t.Helper()
	if err := s.Read(t.Context(), fn); err != nil {
		t.Fatalf("read: %v", err)
	}
}

// events returns the events that f selects.
func events(t testing.TB, s *ledger.Store, f ledger.Filter) (list []event.Event) {
	t.Helper()
	read(t, s, func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), f) {
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		return nil
	})
	return list
}

// actors returns the actor of each event, in order.
func actors(t testing.TB, s *ledger.Store) (names []string) {
	t.Helper()
	for _, e := range events(t, s, ledger.Filter{}) {
		names = append(names, e.Actor)
	}
	return names
}

// number returns the number that a query selects.
func number(ctx context.Context, tx *ledger.Tx, query string, args ...any) (n int64, err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		return 0, errors.Join(errors.New("no row"), rows.Err())
	}
	return n, rows.Scan(&n)
}

// plain opens the file without the store, as another program would.
func plain(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// writeGroup runs fns in one transaction, in this order, and returns the result of Write for each. The store
// needs a long group time: see grouping.
func writeGroup(t testing.TB, s *ledger.Store, fns ...func(*ledger.Tx) error) []error {
	t.Helper()
	errs := make([]error, len(fns)+1)
	var wg sync.WaitGroup
	write := func(i int, fn func(*ledger.Tx) error) {
		wg.Go(func() { errs[i] = s.Write(context.Background(), fn) })
	}
	began, all := make(chan struct{}), make(chan struct{})
	var once sync.Once
	write(len(fns), func(*ledger.Tx) error { // keeps the transaction open until all functions wait
		once.Do(func() { close(began) })
		<-all
		return nil
	})
	<-began
	for i, fn := range fns {
		write(i, fn)
		for s.Queued() <= i {
			runtime.Gosched()
		}
	}
	close(all)
	wg.Wait()
	if errs[len(fns)] != nil {
		t.Logf("the transaction: %v", errs[len(fns)])
	}
	return errs[:len(fns)]
}

// grouping opens a new ledger with a group time long enough for writeGroup.
func grouping(t testing.TB) *ledger.Store {
	t.Helper()
	s := open(t)
	s.SetGroupTime(time.Hour)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
