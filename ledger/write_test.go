package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// The table presence represents a projection's row: seen_at is the version that a compare-and-swap expects.
var (
	insertSeen = ledger.NewSparseInsert("presence", ledger.ColumnTypes{"boot": ledger.TextColumn}, "boot",
		"seen_at")
	setSeen = ledger.NewUpsert("presence", "boot", ledger.ColumnTypes{"boot": ledger.TextColumn}, "boot",
		"seen_at")
	swapSeen = ledger.NewCompareAndSwap("presence", []string{"boot", "seen_at"},
		ledger.ColumnTypes{"boot": ledger.TextColumn}, "seen_at")
)

const selectSeen = `SELECT seen_at FROM presence WHERE boot = ?`

func wantErrors(t *testing.T, got []error, want ...error) {
	t.Helper()
	for i := range want {
		if !errors.Is(got[i], want[i]) {
			t.Errorf("function %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func wantActors(t *testing.T, s *ledger.Store, want ...string) {
	t.Helper()
	if got := actors(t, s); !slices.Equal(got, want) {
		t.Errorf("events: got %s, want %s", got, want)
	}
}

var errOwn = errors.New("the function's own")

func TestWriteManyCallers(t *testing.T) {
	s := open(t)
	const callers, each = 32, 10
	errs := make([]error, callers*each)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				n := i*each + j
				errs[n] = s.Write(t.Context(), func(tx *ledger.Tx) error {
					if err := note(t.Context(), tx, fmt.Sprint(n)); err != nil || n%7 != 0 {
						return err
					}
					if n%2 == 0 { // a read flushes what was written before
						if _, err := number(t.Context(), tx, `SELECT count(*) FROM events`); err != nil {
							return err
						}
					}
					return errOwn
				})
			}
		})
	}
	wg.Wait()
	var want []string
	for n, err := range errs {
		if n%7 == 0 {
			if !errors.Is(err, errOwn) {
				t.Errorf("function %d: got %v, want %v", n, err, errOwn)
			}
			continue
		}
		if err != nil {
			t.Errorf("function %d: %v", n, err)
		}
		want = append(want, fmt.Sprint(n))
	}
	got := actors(t, s)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("events: got %d, want %d", len(got), len(want))
	}
}

func TestWriteFailureRollsBackOwnPartOnly(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	var runs atomic.Int32
	write := func(name string, err error) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			runs.Add(1)
			return errors.Join(tx.Insert(insertSeen, name, 1), note(ctx, tx, name), note(ctx, tx, name), err)
		}
	}
	errs := writeGroup(t, s, write("a", nil), write("b", errOwn), write("c", nil), write("d", errOwn))
	wantErrors(t, errs, nil, errOwn, nil, errOwn)
	wantActors(t, s, "a", "a", "c", "c")
	if runs.Load() != 4 {
		t.Errorf("functions were run %d times, want 4: nothing had been sent", runs.Load())
	}
	read(t, s, func(tx *ledger.Tx) error {
		n, err := number(ctx, tx, `SELECT count(*) FROM presence`)
		if n != 2 {
			t.Errorf("rows: got %d, want 2", n)
		}
		return err
	})
}

func TestWriteFailureRollsBackFlushedPart(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	var runs atomic.Int32
	write := func(name string, want int64, err error) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			runs.Add(1)
			if err := note(ctx, tx, name); err != nil {
				return err
			}
			n, readErr := number(ctx, tx, `SELECT count(*) FROM events`)
			if readErr == nil && n != want {
				t.Errorf("%s sees %d events, want %d", name, n, want)
			}
			if tx.Waited() <= 0 {
				t.Errorf("%s did not wait", name)
			}
			return errors.Join(readErr, err)
		}
	}
	errs := writeGroup(t, s,
		write("a", 1, nil), write("b", 2, errOwn), write("c", 2, nil), write("d", 3, errOwn))
	wantErrors(t, errs, nil, errOwn, nil, errOwn)
	wantActors(t, s, "a", "c")
	if runs.Load() != 8 { // a and b in the optimistic mode, then each again with a savepoint; c and d likewise
		t.Errorf("functions were run %d times, want 8", runs.Load())
	}
}

// A read of the state flushes rows, but no events. A function that fails rolls back its own rows and events
// and no others.
func TestWriteReadsStateBeforeEventsAreFlushed(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	var runs atomic.Int32
	write := func(name string, before, after bool, want int64, err error) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			runs.Add(1)
			own := func(row string) error { return errors.Join(tx.Insert(insertSeen, row, 1), note(ctx, tx, name)) }
			if before {
				if err := own(name); err != nil {
					return err
				}
			}
			rows, readErr := tx.QueryState(ctx, `SELECT count(*) FROM presence`)
			if readErr != nil {
				return readErr
			}
			defer rows.Close()
			var n int64
			if rows.Next() {
				readErr = rows.Scan(&n)
			}
			if n != want {
				t.Errorf("%s sees %d rows, want %d", name, n, want)
			}
			if after {
				readErr = errors.Join(readErr, own(name+", after"))
			}
			return errors.Join(readErr, err)
		}
	}
	errs := writeGroup(t, s, write("a", true, false, 1, nil), write("b", false, true, 1, errOwn),
		write("c", false, true, 1, nil), write("d", false, true, 2, errOwn))
	wantErrors(t, errs, nil, errOwn, nil, errOwn)
	wantActors(t, s, "a", "c")
	if runs.Load() != 4 {
		t.Errorf("functions were run %d times, want 4: nothing of those that failed had been sent", runs.Load())
	}
	runs.Store(0)
	errs = writeGroup(t, s, write("e", true, true, 3, nil), write("f", true, false, 5, errOwn),
		write("g", true, false, 5, nil))
	wantErrors(t, errs, nil, errOwn, nil)
	wantActors(t, s, "a", "c", "e", "e", "g")
}

func TestWriteFailureKeepsNeighboursWrites(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	errs := writeGroup(t, s,
		func(tx *ledger.Tx) error { return note(ctx, tx, "a") },
		func(tx *ledger.Tx) error { // reads first, so what is rolled back is not yet flushed
			if _, err := number(ctx, tx, `SELECT count(*) FROM events`); err != nil {
				return err
			}
			return errors.Join(note(ctx, tx, "b"), errOwn)
		},
		func(tx *ledger.Tx) error { return note(ctx, tx, "c") },
	)
	wantErrors(t, errs, nil, errOwn, nil)
	wantActors(t, s, "a", "c")
}

func TestPutConflictIsOfTheLoserOnly(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	write(t, s, func(tx *ledger.Tx) error {
		return errors.Join(tx.Insert(insertSeen, "x", 1), tx.Insert(insertSeen, "y", 1),
			tx.Insert(insertSeen, "z", 1))
	})
	swap := func(name, row string, from, to int) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			if err := tx.Put(swapSeen, row, from, to); err != nil {
				return err
			}
			return note(ctx, tx, name)
		}
	}
	errs := writeGroup(t, s, swap("a", "x", 1, 2), swap("b", "y", 1, 2), swap("c", "x", 1, 3),
		swap("d", "gone", 1, 2), swap("e", "z", 1, 2), swap("f", "x", 2, 4))
	wantErrors(t, errs, nil, nil, ledger.ErrConflict, ledger.ErrConflict, nil, nil)
	wantActors(t, s, "a", "b", "e", "f")
	read(t, s, func(tx *ledger.Tx) error {
		n, err := number(ctx, tx, selectSeen, "x")
		if n != 4 {
			t.Errorf("row x: got %d, want 4", n)
		}
		return err
	})
}

func TestPutConflictCanBeRetried(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	write(t, s, func(tx *ledger.Tx) error { return tx.Insert(insertSeen, "x", 1) })
	add := func(tx *ledger.Tx) error { // expects 1, and reads the row only after a conflict
		err := tx.Put(swapSeen, "x", 1, 2)
		if errors.Is(err, ledger.ErrConflict) {
			var now int64
			if now, err = number(ctx, tx, selectSeen, "x"); err != nil {
				return err
			}
			err = tx.Put(swapSeen, "x", now, now+1)
		}
		if err != nil {
			return err
		}
		return note(ctx, tx, "add")
	}
	wantErrors(t, writeGroup(t, s, add, add, add), nil, nil, nil)
	read(t, s, func(tx *ledger.Tx) error {
		n, err := number(ctx, tx, selectSeen, "x")
		if n != 4 {
			t.Errorf("row x: got %d, want 4", n)
		}
		return err
	})
}

func TestAppendTakenSeqIsConflict(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	enqueue := func(tx *ledger.Tx) error {
		n := tx.Next()
		return tx.Append(ctx, event.Event{Pos: n, N: n, Seq: 1, Job: "A", At: tx.At(), Actor: "enqueue",
			To: event.Queued, Body: &event.Enqueued{Queue: "mail"}})
	}
	again := func(swallow bool) func(tx *ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			err := errors.Join(tx.Insert(insertSeen, "row", 1), // the job's row, before its event
				tx.Append(ctx, event.Event{Pos: tx.Next(), N: 1, Seq: 1, Job: "A", At: tx.At(), Actor: "again",
					Body: &event.Retried{}}))
			if swallow && errors.Is(err, ledger.ErrConflict) {
				return nil
			}
			return err
		}
	}
	last := func(tx *ledger.Tx) error { return note(ctx, tx, "last") }
	wantErrors(t, writeGroup(t, s, enqueue, again(false), again(true), last), nil, ledger.ErrConflict,
		ledger.ErrConflict, nil)
	wantActors(t, s, "enqueue", "last")
	read(t, s, func(tx *ledger.Tx) error { // I3: no row without its event
		n, err := number(ctx, tx, `SELECT count(*) FROM presence`)
		if n != 0 {
			t.Errorf("rows without their event: %d", n)
		}
		return err
	})
}

func TestAppendRefusesGapAndEarlierTime(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	write(t, s, func(tx *ledger.Tx) error { return note(ctx, tx, "a") })
	for name, change := range map[string]func(e *event.Event){
		"a pos too high": func(e *event.Event) { e.Pos++ },
		"a pos taken":    func(e *event.Event) { e.Pos-- },
		"an earlier at":  func(e *event.Event) { e.At = e.At.Add(-time.Hour) },
	} {
		err := s.Write(ctx, func(tx *ledger.Tx) error {
			e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: "b", Body: &event.Restored{}}
			change(&e)
			// what was written before may be half a transition, so the transaction cannot succeed
			_ = tx.Append(ctx, e)
			return nil
		})
		if !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", name, err)
		}
	}
	wantActors(t, s, "a")
}

func TestBulkWritesEveryRow(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	const rows = 1000 // more than one list holds, and not a power of two
	write(t, s, func(tx *ledger.Tx) error {
		for i := range rows {
			if err := errors.Join(tx.Insert(insertSeen, fmt.Sprint(i), 1), note(ctx, tx, "x")); err != nil {
				return err
			}
		}
		return nil
	})
	write(t, s, func(tx *ledger.Tx) error {
		for i := range rows {
			if err := tx.Put(swapSeen, fmt.Sprint(i), 1, i); err != nil {
				return err
			}
		}
		n, err := number(ctx, tx, `SELECT count(*) FROM presence WHERE CAST(seen_at AS text) = boot`)
		if n != rows {
			t.Errorf("rows as expected: got %d, want %d", n, rows)
		}
		return err
	})
	if got := len(events(t, s, ledger.Filter{})); got != rows {
		t.Errorf("events: got %d, want %d", got, rows)
	}
}

// A dictionary number that was rolled back must not stay in the cache: the next name would get the same
// number.
func TestDictionaryForgetsRolledBackNames(t *testing.T) {
	who := func(name string) event.Worker { return event.Worker{Name: name, Boot: "boot-" + name} }
	act := func(ctx context.Context, tx *ledger.Tx, name string) error {
		return tx.Append(ctx, event.Event{Pos: tx.Next(), At: tx.At(), Actor: name, Worker: who(name),
			Body: &event.WorkerStopped{}})
	}
	fail := func(ctx context.Context, name string, look bool) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			if err := act(ctx, tx, name); err != nil {
				return err
			}
			if look {
				if _, err := number(ctx, tx, `SELECT count(*) FROM events`); err != nil {
					return err
				}
			}
			return errOwn
		}
	}
	for name, run := range map[string]func(t *testing.T, s *ledger.Store, then func(*ledger.Tx) error) []error{
		"truncated from the buffer": func(t *testing.T, s *ledger.Store, then func(*ledger.Tx) error) []error {
			return writeGroup(t, s, fail(t.Context(), "a", false), then)[1:]
		},
		"repeated with savepoints": func(t *testing.T, s *ledger.Store, then func(*ledger.Tx) error) []error {
			return writeGroup(t, s, then, fail(t.Context(), "a", true), fail(t.Context(), "b", true))[:1]
		},
		"failed alone": func(t *testing.T, s *ledger.Store, then func(*ledger.Tx) error) []error {
			return append(writeGroup(t, s, fail(t.Context(), "a", true)), writeGroup(t, s, then)...)[1:]
		},
		"commit failed": func(t *testing.T, s *ledger.Store, then func(*ledger.Tx) error) []error {
			ledgertest.OfSQLite(t)
			var failing atomic.Bool
			if err := s.FailCommits(&failing); err != nil {
				t.Fatal(err)
			}
			failing.Store(true)
			errs := writeGroup(t, s, func(tx *ledger.Tx) error { return act(t.Context(), tx, "a") })
			wantErrors(t, errs, ledger.ErrUnknown)
			failing.Store(false)
			return writeGroup(t, s, then)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := grouping(t)
			errs := run(t, s, func(tx *ledger.Tx) error {
				return errors.Join(act(t.Context(), tx, "c"), act(t.Context(), tx, "a"), act(t.Context(), tx, "d"))
			})
			wantErrors(t, errs, nil)
			write(t, s, func(tx *ledger.Tx) error {
				return errors.Join(act(t.Context(), tx, "b"),
					act(t.Context(), tx, "a"))
			})
			fresh := openAt(t, s.DSN()) // its dictionary is not cached yet
			for _, store := range []*ledger.Store{s, fresh} {
				wantActors(t, store, "c", "a", "d", "b", "a")
				for _, e := range events(t, store, ledger.Filter{}) {
					if e.Worker != who(e.Actor) {
						t.Errorf("event %d of %s names the worker %+v", e.Pos, e.Actor, e.Worker)
					}
				}
			}
		})
	}
}

func TestCommitFailureIsUnknownToAll(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := grouping(t)
	ctx := t.Context()
	var failing atomic.Bool
	if err := s.FailCommits(&failing); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	errs := writeGroup(t, s,
		func(tx *ledger.Tx) error { return note(ctx, tx, "a") },
		func(tx *ledger.Tx) error { // decides by what its neighbour wrote, which may be rolled back
			n, err := number(ctx, tx, `SELECT count(*) FROM events`)
			if err == nil && n > 0 {
				err = errOwn
			}
			return err
		})
	wantErrors(t, errs, ledger.ErrUnknown, ledger.ErrUnknown)
	failing.Store(false)
	wantActors(t, s)
	write(t, s, func(tx *ledger.Tx) error { return note(ctx, tx, "b") })
	wantActors(t, s, "b")
}

func TestFullDiskWritesNothingAndRecovers(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := grouping(t)
	ctx := t.Context()
	write(t, s, func(tx *ledger.Tx) error {
		_, err := tx.Exec(`PRAGMA max_page_count = 1`) // SQLite raises it to the current size
		return err
	})
	fill := func(tx *ledger.Tx) error {
		if err := note(ctx, tx, "fill"); err != nil {
			return err
		}
		return tx.PutBody(tx.Next()-1, nil, make([]byte, 1<<20))
	}
	small := func(tx *ledger.Tx) error { return note(ctx, tx, "small") }
	wantErrors(t, writeGroup(t, s, small, fill, small), ledger.ErrFull, ledger.ErrFull, ledger.ErrFull)
	wantActors(t, s)
	write(t, s, func(tx *ledger.Tx) error {
		_, err := tx.Exec(`PRAGMA max_page_count = 1000000`)
		return err
	})
	wantErrors(t, writeGroup(t, s, small, fill), nil, nil)
	wantActors(t, s, "small", "fill")
}

func TestStatementIsReusedAfterError(t *testing.T) {
	s := open(t)
	const query = `INSERT INTO presence (boot, seen_at) VALUES (?, ?)`
	for i := range 3 {
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			if _, err := tx.Exec(query, "a", 1); err != nil {
				return err
			}
			_, err := tx.Exec(query, "a", 1)
			return err
		})
		if err == nil {
			t.Fatalf("round %d: the same key twice was accepted", i)
		}
	}
	write(t, s, func(tx *ledger.Tx) error {
		n, err := tx.Exec(query, "a", 1)
		if n != 1 {
			t.Errorf("rows changed: got %d, want 1", n)
		}
		return err
	})
	if err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		_,
			err := tx.Exec(`INSERT INTO nowhere VALUES (1)`)
		return err
	}); err == nil {
		t.Error("a statement on no table was accepted")
	}
}

func TestQueryNestsWithSameText(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	write(t, s, func(tx *ledger.Tx) error {
		return errors.Join(note(ctx, tx, "a"), note(ctx, tx, "b"), note(ctx, tx, "c"))
	})
	nest := func(tx *ledger.Tx) error {
		var got []int64
		for outer, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			for inner, err := range tx.Events(ctx, ledger.Filter{}) {
				if err != nil {
					return err
				}
				if got = append(got, outer.Pos*10+inner.Pos); inner.Pos == outer.Pos {
					break
				}
			}
		}
		if want := []int64{11, 21, 22, 31, 32, 33}; !slices.Equal(got, want) {
			t.Errorf("pairs: got %v, want %v", got, want)
		}
		return nil
	}
	read(t, s, nest)
	read(t, s, nest)
	write(t, s, nest)
}

// TestPendingQueryIsReadLater: a pending query returns the rows as of the call of Prefetch, whatever is
// written before they are read.
func TestPendingQueryIsReadLater(t *testing.T) {
	const rows = 300
	names := func(tx *ledger.Tx, a *ledger.PendingQuery) (got []string, err error) {
		found, err := a.Rows(t.Context())
		if err != nil {
			return nil, err
		}
		defer found.Close()
		for found.Next() {
			var boot string
			var seen int64
			if err := found.Scan(&boot, &seen); err != nil {
				return nil, err
			}
			got = append(got, boot)
		}
		return got, found.Err()
	}
	for between, do := range map[string]func(tx *ledger.Tx) error{
		"nothing": func(*ledger.Tx) error { return nil },
		"lists of rows": func(tx *ledger.Tx) error {
			for i := range rows {
				if err := tx.Put(swapSeen, fmt.Sprint("old", i), 1, 2+i%2); err != nil {
					return err
				}
			}
			return nil
		},
		"an insert and a query of other columns": func(tx *ledger.Tx) error {
			_, err := number(t.Context(), tx, `SELECT count(*) FROM kinds`)
			return errors.Join(tx.Put(swapSeen, "old1", 1, 5), note(t.Context(), tx, "x"), err)
		},
		"a write while a query is open": func(tx *ledger.Tx) error {
			outer, err := tx.QueryState(t.Context(), `SELECT n FROM kinds ORDER BY n`)
			if err != nil {
				return err
			}
			outer.Next()
			return errors.Join(tx.Put(swapSeen, "old2", 1, 5), outer.Close())
		},
		"a query that is not read": func(tx *ledger.Tx) error {
			_, err := tx.Prefetch(`SELECT kind, n, n, n FROM kinds`)
			return err
		},
	} {
		t.Run(between, func(t *testing.T) {
			s := open(t)
			write(t, s, func(tx *ledger.Tx) error {
				for i := range rows {
					if err := tx.Insert(insertSeen, fmt.Sprint("old", i), 1); err != nil {
						return err
					}
				}
				return errors.Join(tx.Insert(insertSeen, "a", 7), tx.Insert(insertSeen, "b", 7),
					tx.Insert(insertSeen, "c", 7))
			})
			both := func(tx *ledger.Tx) error {
				asked, err := tx.Prefetch(`SELECT boot, seen_at FROM presence WHERE boot IN (?, ?, ?) ORDER BY boot`, "a",
					"b", "c")
				if err == nil {
					err = do(tx)
				}
				if err != nil {
					return err
				}
				got, err := names(tx, asked)
				if err == nil && !slices.Equal(got, []string{"a", "b", "c"}) {
					t.Errorf("got %q", got)
				}
				return err
			}
			write(t, s, both)
			write(t, s, func(tx *ledger.Tx) error { // again, with every statement prepared
				for i := range rows {
					if err := tx.Put(setSeen, fmt.Sprint("old", i), 1); err != nil {
						return err
					}
				}
				return both(tx)
			})
		})
	}
}

// TestPendingQueryDiscardedOnRollback: a failed transaction discards its pending queries, and the next
// transaction runs.
func TestPendingQueryDiscardedOnRollback(t *testing.T) {
	s := open(t)
	ask := func(tx *ledger.Tx) error {
		_, err := tx.Prefetch(`SELECT kind, n FROM kinds`)
		return err
	}
	write(t, s, ask) // the rows are never read
	errs := writeGroup(t, s, ask, func(tx *ledger.Tx) error {
		asked, err := tx.Prefetch(`SELECT count(*) FROM presence`)
		if err == nil {
			err = tx.Put(swapSeen, "none", 1, 2) // a conflict
		}
		if err == nil {
			_, err = asked.Rows(t.Context())
		}
		return err
	}, func(tx *ledger.Tx) error { return errors.Join(ask(tx), note(t.Context(), tx, "x")) })
	wantErrors(t, errs, nil, ledger.ErrConflict, nil)
	wantActors(t, s, "x")
}

// inquirer has the same warm-up queries in every transaction.
type inquirer []ledger.WarmupQuery

func (q inquirer) WarmupQueries(int64, bool) []ledger.WarmupQuery { return q }

// TestTxCachePrefetches: the rows of a warm-up query are those of the beginning of the transaction. They are
// discarded by the first write.
func TestTxCachePrefetches(t *testing.T) {
	ctx, dsn := t.Context(), ledgertest.New(t)
	s, other := ledgertest.OpenAt(t, dsn), ledgertest.OpenAt(t, dsn)
	const events, broken = `SELECT count(*) FROM events WHERE pos > ?`, `SELECT nothing FROM nowhere`
	stores := func(queries inquirer) func(tx *ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			tx.Cache().Store(queries)
			return nil
		}
	}
	enqueue := func(tx *ledger.Tx) error {
		pos := tx.Next()
		return tx.Append(ctx, event.Event{Pos: pos, N: pos, Seq: 1, Job: event.JobID(fmt.Sprint("J", pos)),
			At: tx.At(), Actor: "x", To: event.Queued,
			Body: &event.Enqueued{Queue: "mail", RunAt: tx.At(), MaxAttempts: 5}})
	}
	written := 0
	byOthers := func() {
		t.Helper()
		write(t, other, enqueue)
		written++
	}
	// answer returns what a transaction gets that loads the cache: before it writes, and after.
	answer := func(query string) (n int64, ok, after bool) {
		t.Helper()
		write(t, s, func(tx *ledger.Tx) error {
			value, _, _ := tx.Cache().Load()
			tx.Cache().Store(value)
			asked := tx.Cache().Prefetched(query)
			if ok = asked != nil; ok {
				for range 2 { // the rows can be read more than once
					rows, err := asked.Rows(ctx)
					if err != nil {
						return err
					}
					for rows.Next() {
						if err := rows.Scan(&n); err != nil {
							return err
						}
					}
					if err := errors.Join(rows.Err(), rows.Close()); err != nil {
						return err
					}
				}
			}
			err := enqueue(tx)
			after = tx.Cache().Prefetched(query) != nil
			return err
		})
		written++
		return n, ok, after
	}
	onPostgres := ledgertest.OnPostgres(t)

	write(t, s, stores(inquirer{{Query: events, Args: []any{0}}}))
	byOthers()
	if _, ok, _ := answer(events); ok {
		t.Error("asked although no other process had written before")
	}
	for range 3 {
		byOthers()
		if n, ok, after := answer(events); ok != onPostgres || ok && n != int64(written-1) || after {
			t.Errorf("answered %t with %d of %d events, and after a write %t", ok, n, written-1, after)
		}
	}
	write(t, s, func(*ledger.Tx) error { return nil }) // it does not load the cache
	if _, ok, _ := answer(events); ok {
		t.Error("asked although the last transaction had no use for it")
	}
	byOthers()
	answer(events)
	alone := 0
	for alone = 0; alone < 20; alone++ {
		if _, ok, _ := answer(events); !ok {
			break
		}
	}
	// A server whose round trips take long is always asked, and so is one on a busy machine.
	if alone == 20 && !onPostgres || onPostgres && alone == 0 {
		t.Errorf("asked %d times while no other process wrote", alone)
	}

	write(t, s, stores(inquirer{{Query: events, Args: []any{0}}, {Query: broken}}))
	byOthers()
	answer(events)
	byOthers()
	if _, ok, _ := answer(broken); ok {
		t.Error("a question that cannot be asked was answered")
	}
	write(t, s, func(tx *ledger.Tx) error {
		if value, _, _ := tx.Cache().Load(); onPostgres && value != nil {
			t.Error("a value whose warm-up query fails is still stored")
		}
		return nil
	})
}

func TestReadIsSnapshotAndBlocksNoWriter(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	write(t, s, func(tx *ledger.Tx) error { return note(ctx, tx, "before") })
	count := func(tx *ledger.Tx) int64 {
		n, err := number(ctx, tx, `SELECT count(*) FROM events`)
		if err != nil {
			t.Errorf("count: %v", err)
		}
		return n
	}
	read(t, s, func(tx *ledger.Tx) error {
		if got := count(tx); got != 1 {
			t.Errorf("at first: got %d, want 1", got)
		}
		for range 3 {
			write(t, s, func(tx *ledger.Tx) error { return note(ctx, tx, "meanwhile") })
		}
		tail, err := tx.Tail(ctx)
		if got := count(tx); got != 1 || tail != 1 {
			t.Errorf("later in the same snapshot: got %d events up to %d, want 1", got, tail)
		}
		return err
	})
	write(t, s, func(tx *ledger.Tx) error {
		if err := note(ctx, tx, "own"); err != nil {
			return err
		}
		if got := count(tx); got != 5 {
			t.Errorf("the writer sees %d of its own, want 5", got)
		}
		read(t, s, func(tx *ledger.Tx) error {
			if got := count(tx); got != 4 {
				t.Errorf("a reader next to an open transaction: got %d, want 4", got)
			}
			return nil
		})
		return nil
	})
}

func TestReadCannotWrite(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	read(t, s, func(tx *ledger.Tx) error {
		if err := note(ctx, tx, "a"); err == nil {
			t.Error("Append was accepted")
		}
		if err := tx.Insert(insertSeen, "a", 1); err == nil {
			t.Error("Put was accepted")
		}
		if n, err := tx.Name(ctx, "new"); n != 0 || err != nil {
			t.Errorf("a name that is not there: got %d, %v, want 0", n, err)
		}
		if _, err := tx.Exec(`DELETE FROM presence`); err == nil {
			t.Error("Exec was accepted")
		}
		return nil
	})
	wantActors(t, s)
}

func TestReadAfterCancelledRead(t *testing.T) {
	s := open(t)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Read(ctx, func(tx *ledger.Tx) error {
			for _, err := range tx.Events(ctx, ledger.Filter{}) {
				if err != nil {
					return err
				}
				cancel()
			}
			_, err := tx.Query(ctx, `SELECT 1`)
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
	}
	wantActors(t, s, "a")
}

func TestClockIsReadOncePerTransaction(t *testing.T) {
	s := grouping(t)
	ctx := t.Context()
	var readings atomic.Int32
	s.Now = func() time.Time { return ledgertest.Epoch.Add(time.Duration(readings.Add(1)) * time.Second) }
	ask := func(tx *ledger.Tx) error {
		tx.Now()
		return errors.Join(note(ctx, tx, "a"), note(ctx, tx, "b"))
	}
	wantErrors(t, writeGroup(t, s, ask, ask, ask), nil, nil, nil)
	write(t, s, func(*ledger.Tx) error { return nil })
	if readings.Load() != 1 {
		t.Errorf("readings: got %d, want 1", readings.Load())
	}
	for _, e := range events(t, s, ledger.Filter{}) {
		if want := ledgertest.Epoch.Add(time.Second); !e.At.Equal(want) {
			t.Errorf("event %d: at %s, want %s", e.Pos, e.At, want)
		}
	}
	// The savepoint mode is a second transaction with its own clock reading, which a failure does not change.
	readings.Store(1)
	fail := func(tx *ledger.Tx) error { return errors.Join(ask(tx), errOwn) }
	stale := func(tx *ledger.Tx) error { return tx.Put(swapSeen, "gone", 1, 2) }
	wantErrors(t, writeGroup(t, s, fail, ask, fail, ask, stale), errOwn, nil, errOwn, nil, ledger.ErrConflict)
	if readings.Load() != 3 {
		t.Errorf("readings in two transactions: got %d, want 2", readings.Load()-1)
	}
}

func TestAtNeverDecreases(t *testing.T) {
	s := open(t)
	at := func(seconds int) time.Time { return ledgertest.Epoch.Add(time.Duration(seconds) * time.Second) }
	var now time.Time
	s.Now = func() time.Time { return now }
	var got []string
	for _, seconds := range []int{0, 10, 5, -3600, 10, 11} {
		now = at(seconds).Add(999) // below a microsecond
		write(t, s, func(tx *ledger.Tx) error {
			if !tx.Now().Equal(at(seconds)) {
				t.Errorf("Now: got %s, want the clock's own %s", tx.Now(), at(seconds))
			}
			return errors.Join(note(t.Context(), tx, "a"), note(t.Context(), tx, "b"))
		})
	}
	for _, e := range events(t, s, ledger.Filter{}) {
		got = append(got, fmt.Sprint(e.At.Sub(ledgertest.Epoch).Seconds()))
	}
	if want := "0 0 10 10 10 10 10 10 10 10 11 11"; strings.Join(got, " ") != want {
		t.Errorf("at: got %s, want %s", strings.Join(got, " "), want)
	}
}

func TestWriteSkipsCancelledCaller(t *testing.T) {
	s := open(t)
	s.SetGroupTime(time.Hour)
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errOwn)
	never := func(*ledger.Tx) error { t.Error("it was run"); return nil }
	if err := s.Write(gone, never); !errors.Is(err, errOwn) {
		t.Errorf("before: got %v, want the cause", err)
	}
	if err := s.Read(gone, func(tx *ledger.Tx) error {
		_,
			err := tx.Query(gone, `SELECT 1`)
		return err
	}); err == nil {
		t.Error("a read with a context that has ended")
	}

	began, release, answered := make(chan struct{}), make(chan struct{}), make(chan error)
	begin := sync.OnceFunc(func() { close(began) }) // a function may run more than once
	go func() {
		answered <- s.Write(context.Background(), func(tx *ledger.Tx) error {
			begin()
			<-release
			return note(context.Background(), tx, "a")
		})
	}()
	<-began
	waits, leave := context.WithCancelCause(t.Context())
	left := make(chan error)
	go func() { left <- s.Write(waits, never) }()
	for s.Queued() == 0 {
		runtime.Gosched()
	}
	leave(errOwn)
	if err := <-left; !errors.Is(err, errOwn) { // while another caller still holds the transaction
		t.Errorf("while waiting: got %v, want the cause", err)
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	wantActors(t, s, "a")
}

func TestWriteCallerLeavesWhileLockIsHeld(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := open(t)
	other := plain(t, s.Path())
	mustExec(t, other, `BEGIN IMMEDIATE`)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		left <- s.Write(ctx, func(*ledger.Tx) error { t.Error("it was run"); return nil })
	}()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	mustExec(t, other, `ROLLBACK`)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
}

func TestWriteLockTimeoutIsBusy(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := open(t)
	s.SetLockWait(5 * time.Millisecond)
	other := plain(t, s.Path())
	mustExec(t, other, `BEGIN IMMEDIATE`)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.Write(t.Context(), func(*ledger.Tx) error { t.Error("it was run"); return nil })
		})
	}
	wg.Wait()
	for i, err := range errs {
		if !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("caller %d: got %v, want ErrBusy", i, err)
		}
	}
	read(t, s, func(tx *ledger.Tx) error {
		_, err := number(t.Context(), tx, `SELECT count(*) FROM events`)
		return err
	})
	mustExec(t, other, `ROLLBACK`)
	s.SetLockWait(time.Minute)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
}

func TestWriteRefusesExchangedFile(t *testing.T) {
	ledgertest.OfSQLite(t)
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			return os.Rename(filepath.Join(filepath.Dir(path), "other.db"), path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			other := ledgertest.OpenAt(t, filepath.Join(dir, "other.db"))
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			s := ledgertest.OpenAt(t, filepath.Join(dir, "jobs.db"))
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
			if err := replace(s.Path()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				err := s.Write(t.Context(), func(*ledger.Tx) error { t.Error("it was run"); return nil })
				if !errors.Is(err, ledger.ErrReplaced) {
					t.Errorf("write: got %v, want ErrReplaced", err)
				}
				err = s.Read(t.Context(), func(*ledger.Tx) error { t.Error("it was run"); return nil })
				if !errors.Is(err, ledger.ErrReplaced) {
					t.Errorf("read: got %v, want ErrReplaced", err)
				}
			}
			if name == "moved" { // moved back: nothing is lost
				if err := os.Rename(s.Path()+".old", s.Path()); err != nil {
					t.Fatal(err)
				}
				write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
				wantActors(t, s, "a", "b")
			}
		})
	}
}

func TestCloseAnswersEveryCaller(t *testing.T) {
	s := ledgertest.Open(t)
	s.SetGroupTime(0)
	var acknowledged atomic.Int64
	began, release := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) }) // a function may run more than once
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Write(context.Background(), func(tx *ledger.Tx) error {
			begin()
			<-release
			return note(context.Background(), tx, "first")
		})
		if err != nil {
			t.Errorf("the transaction under way: %v", err)
		}
		acknowledged.Add(1)
	})
	<-began
	const callers = 50
	for range callers {
		wg.Go(func() {
			for {
				err := s.Write(context.Background(),
					func(tx *ledger.Tx) error { return note(context.Background(), tx, "more") })
				if err == nil {
					acknowledged.Add(1)
					continue
				}
				if !errors.Is(err, ledger.ErrClosed) {
					t.Errorf("got %v, want ErrClosed", err)
				}
				return
			}
		})
	}
	for s.Queued() < callers {
		runtime.Gosched()
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	close(release)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for range 100 {
		if err := s.Write(context.Background(), func(*ledger.Tx) error { return nil }); !errors.Is(err,
			ledger.ErrClosed) {
			t.Fatalf("write after Close: got %v, want ErrClosed", err)
		}
		if err := s.Read(context.Background(), func(*ledger.Tx) error { return nil }); !errors.Is(err,
			ledger.ErrClosed) {
			t.Fatalf("read after Close: got %v, want ErrClosed", err)
		}
	}
	if got := int64(len(actors(t, openAt(t, s.DSN())))); got != acknowledged.Load() {
		t.Errorf("events: got %d, want the %d that were acknowledged", got, acknowledged.Load())
	}
}

func TestBodiesAreExactAndWrittenOnce(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	bodies := map[int64][]byte{1: []byte("a\x00b\xff"), 2: {}, 3: make([]byte, 1<<20)}
	salt := []byte("0123456789abcdef")
	write(t, s, func(tx *ledger.Tx) error {
		for pos, body := range bodies {
			if err := tx.PutBody(pos, salt, body); err != nil {
				return err
			}
		}
		return tx.PutBody(4, nil, nil)
	})
	check := func(tx *ledger.Tx) error {
		for pos, want := range bodies {
			gotSalt, got, ok, err := tx.Body(ctx, pos)
			if err != nil || !ok || string(got) != string(want) || string(gotSalt) != string(salt) {
				t.Errorf("body %d: got %d bytes, %t, %v", pos, len(got), ok, err)
			}
		}
		gotSalt, got, ok, err := tx.Body(ctx, 4)
		if err != nil || !ok || len(got) != 0 || gotSalt != nil {
			t.Errorf("a nil body: got %q, %q, %t, %v", gotSalt, got, ok, err)
		}
		if _, _, ok, err := tx.Body(ctx, 99); ok || err != nil {
			t.Errorf("no body: got %t, %v", ok, err)
		}
		var positions []int64
		for b, err := range tx.BodiesAfter(ctx, 0) {
			if err != nil {
				return err
			}
			positions = append(positions, b.Pos)
		}
		if want := []int64{1, 2, 3, 4}; !slices.Equal(positions, want) {
			t.Errorf("bodies: got %v, want %v", positions, want)
		}
		return nil
	}
	read(t, s, check)
	if err := s.Write(ctx, func(tx *ledger.Tx) error {
		return tx.PutBody(1, nil, []byte("other"))
	}); err == nil {
		t.Error("a body was written over")
	}
	if err := s.Write(ctx, func(tx *ledger.Tx) error {
		_,
			err := tx.Exec(`UPDATE bodies SET salt = body`)
		return err
	}); err == nil {
		t.Error("a body was changed")
	}
	write(t, s, check)
}

func TestDigestCoversSaltAndBody(t *testing.T) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // SHA-256 of "abc"
	for _, split := range []int{0, 1, 3} {
		if got := ledger.Digest([]byte("abc")[:split], []byte("abc")[split:]); got != abc {
			t.Errorf("salt of %d bytes: got %s, want %s", split, got, abc)
		}
	}
}

func TestWriterKeepsSettings(t *testing.T) {
	ledgertest.OfSQLite(t)
	for dsn, sync := range map[string]string{"%s": "full", "sqlite:%s": "full", "sqlite:%s?sync=full": "full",
		"sqlite:%s?sync=normal": "normal"} {
		s := openAt(t, fmt.Sprintf(dsn, filepath.Join(t.TempDir(), "jobs.db")))
		got := make(map[string]int64)
		write(t, s, func(tx *ledger.Tx) error {
			for _, name := range []string{"synchronous", "wal_autocheckpoint", "recursive_triggers", "busy_timeout",
				"trusted_schema", "application_id"} {
				n, err := number(t.Context(), tx, `PRAGMA `+name)
				if err != nil {
					return err
				}
				got[name] = n
			}
			return nil
		})
		// With full the Store syncs, after SQLite's lock is free, and makes the checkpoints.
		want := map[string]int64{"synchronous": 1, "wal_autocheckpoint": 0, "recursive_triggers": 1,
			"busy_timeout": 0, "trusted_schema": 0, "application_id": 0x6a6c6772}
		if sync == "normal" {
			want["wal_autocheckpoint"] = 1000
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", dsn, got, want)
		}
		if s.Sync() != sync {
			t.Errorf("%s: Sync is %s, want %s", dsn, s.Sync(), sync)
		}
	}
}

// TestTxCacheKeepsWhatRareEventsSay: it is kept until an event of that kind comes, a transaction fails, or
// another store has written.
func TestTxCacheKeepsWhatRareEventsSay(t *testing.T) {
	ctx, dsn := t.Context(), ledgertest.New(t)
	s, other := ledgertest.OpenAt(t, dsn), ledgertest.OpenAt(t, dsn)
	const kind = event.KindQueueLimited
	bound := func(tx *ledger.Tx) error {
		return tx.Append(ctx, event.Event{Pos: tx.Next(), At: tx.At(), Actor: "x",
			Body: &event.QueueLimited{Queue: "mail"}})
	}
	keep := func(tx *ledger.Tx) error {
		tx.Cache().KeepRare(kind, "kept")
		return nil
	}
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		between func()
		want    bool
	}{
		"nothing": {func() {}, true},
		"another kind": {func() { write(t, s, func(tx *ledger.Tx) error { return note(ctx, tx, "x") }) },
			true},
		"another store's read": {func() { wantRead(t, other) }, true},
		"this kind":            {func() { write(t, s, bound) }, false},
		"this kind, kept again": {func() {
			write(t, s, func(tx *ledger.Tx) error { return errors.Join(bound(tx), keep(tx)) })
		}, true},
		"another store": {func() { write(t, other, func(tx *ledger.Tx) error { return note(ctx, tx, "x") }) },
			false},
		"a failure": {func() {
			err := s.Write(ctx, func(tx *ledger.Tx) error { return errors.Join(keep(tx), failed) })
			if !errors.Is(err, failed) {
				t.Error(err)
			}
		}, false},
	} {
		write(t, s, keep)
		c.between()
		write(t, s, func(tx *ledger.Tx) error {
			if value, ok := tx.Cache().Rare(kind); ok != c.want || ok && value != "kept" {
				t.Errorf("after %s: %v, %t", name, value, ok)
			}
			if value, ok := tx.Cache().Rare(event.KindQueueResumed); ok {
				t.Errorf("after %s: of a kind of which nothing was kept: %v", name, value)
			}
			return nil
		})
	}
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		tx.Cache().KeepRare(kind, "kept")
		if _, ok := tx.Cache().Rare(kind); ok {
			t.Error("a snapshot keeps something")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func wantRead(t *testing.T, s *ledger.Store) {
	t.Helper()
	if err := s.Read(t.Context(), func(*ledger.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}
