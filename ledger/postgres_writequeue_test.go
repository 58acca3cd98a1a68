package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// A reader that asks for the events after the last pos it has seen misses none, whatever else happens on the
// server: all positions up to the last visible one are visible. Transactions that fail leave no gap.
func TestPostgresFollowerMissesNothing(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	openAt(t, dsn)
	meanwhile(t, dsn)

	follower, stop := connect(t, dsn), make(chan struct{})
	var last, lastAt int64
	var seen []string
	follow := func() {
		rows, err := follower.Query(context.Background(),
			`SELECT e.pos, e.at, n.name FROM events e JOIN names n ON n.n = e.actor WHERE pos > $1 ORDER BY pos`, last)
		if err != nil {
			t.Error(err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var pos, at int64
			var actor string
			if err := rows.Scan(&pos, &at, &actor); err != nil {
				t.Error(err)
				return
			}
			if pos != last+1 || at < lastAt {
				t.Errorf("event %d at %d comes after event %d at %d", pos, at, last, lastAt)
			}
			last, lastAt, seen = pos, at, append(seen, actor)
		}
		if err := rows.Err(); err != nil {
			t.Error(err)
		}
	}
	execute(t, follower, `SET search_path = jobledger`)
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-stop:
				follow()
				return
			default:
				follow()
			}
		}
	})

	const stores, clients, each = 4, 4, 40
	var mu sync.Mutex
	var acknowledged []string
	var writing sync.WaitGroup
	for i := range stores {
		s := ledgertest.OpenAt(t, dsn)
		for j := range clients {
			writing.Go(func() {
				for k := range each {
					name := fmt.Sprintf("%d-%d-%d", i, j, k)
					err := s.Write(t.Context(), func(tx *ledger.Tx) error {
						if err := note(t.Context(), tx, name); err != nil || k%5 != 0 {
							return err
						}
						if k%2 == 0 { // a read flushes what was written before, so the failure has to roll it back
							if _, err := number(t.Context(), tx, `SELECT count(*) FROM events`); err != nil {
								return err
							}
						}
						return errOwn
					})
					switch {
					case k%5 == 0 && errors.Is(err, errOwn):
					case k%5 != 0 && err == nil:
						mu.Lock()
						acknowledged = append(acknowledged, name)
						mu.Unlock()
					default:
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	writing.Wait()
	close(stop)
	following.Wait()
	if want := stores * clients * each * 4 / 5; len(acknowledged) != want || last != int64(want) {
		t.Errorf("%d functions were acknowledged and %d events followed, want %d", len(acknowledged), last, want)
	}
	slices.Sort(seen)
	slices.Sort(acknowledged)
	if !slices.Equal(seen, acknowledged) {
		t.Errorf("followed: %s", difference(seen, acknowledged))
	}
}

// meanwhile starts what delays designs that wait for other transactions: a long transaction in another
// database, a prepared transaction, and a snapshot that stays open.
func meanwhile(t *testing.T, dsn string) {
	t.Helper()
	other := connect(t, ledgertest.Postgres(t))
	execute(t, other, `CREATE TABLE long (n int)`)
	execute(t, other, `BEGIN`)
	execute(t, other, `INSERT INTO long VALUES (1)`)

	snapshot := connect(t, dsn)
	execute(t, snapshot, `BEGIN ISOLATION LEVEL REPEATABLE READ`)
	ask[int](t, snapshot, `SELECT count(*) FROM jobledger.events`)
	t.Cleanup(func() {
		var n int
		if err := snapshot.QueryRow(context.Background(), `SELECT count(*) FROM jobledger.events`).Scan(
			&n); err != nil || n != 0 {
			t.Errorf("the snapshot has %d events, %v, want 0", n, err)
		}
	})
	prepareTransaction(t, dsn, `CREATE TABLE public.mine (n int)`)
}

// prepared leaves a prepared transaction that has run a statement, and rolls it back when the test ends at
// the latest.
func prepareTransaction(t *testing.T, dsn, statement string) (end func()) {
	t.Helper()
	conn := connect(t, dsn)
	if ask[string](t, conn, `SHOW max_prepared_transactions`) == "0" {
		t.Log("this server prepares no transactions")
		return nil
	}
	name := "p" + ask[string](t, conn, `SELECT current_database()`) // the name is global to the server
	execute(t, conn, `BEGIN`)
	execute(t, conn, statement)
	execute(t, conn, `PREPARE TRANSACTION '`+name+`'`)
	end = sync.OnceFunc(func() {
		if _, err := conn.Exec(context.Background(), `ROLLBACK PREPARED '`+name+`'`); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// A prepared transaction keeps its locks without any process. One that holds the ledger's lock blocks all
// writers: they report it in time and continue when it is gone. Readers do not notice.
func TestPostgresLockTimeoutIsBusy(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	s.SetLockWait(200 * time.Millisecond)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	end := prepareTransaction(t, s.DSN(), takeLock)
	if end == nil {
		t.Skip("this server prepares no transactions")
	}
	start := time.Now()
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "never") })
		})
	}
	wg.Wait()
	for i, err := range errs {
		if !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("caller %d: got %v, want ErrBusy", i, err)
		}
	}
	if took := time.Since(start); took < 200*time.Millisecond || took > 20*time.Second {
		t.Errorf("after %v, want some 200ms", took)
	}
	wantActors(t, s, "a")
	end()
	s.SetLockWait(time.Minute)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	wantActors(t, s, "a", "b")
}

func TestPostgresCallerLeavesWhileLockIsHeld(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	other := connect(t, s.DSN())
	execute(t, other, `BEGIN`)
	execute(t, other, takeLock)
	ctx, cancel := context.WithCancelCause(t.Context())
	left := make(chan error)
	go func() {
		left <- s.Write(ctx, func(tx *ledger.Tx) error { return note(t.Context(), tx, "never") })
	}()
	eventually(t, "waiting", func() bool { return len(waiting(t, other)) == 1 })
	cancel(errOwn)
	select {
	case err := <-left:
		if !errors.Is(err, errOwn) {
			t.Errorf("got %v, want the cause", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the caller has left and is not answered")
	}
	execute(t, other, `COMMIT`)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	wantActors(t, s, "a")
}

// The server disconnects a process that is stopped while it holds the lock, and other writers continue. The
// stopped process repeats its write when it runs again, or reports an unknown outcome.
func TestPostgresFrozenWriterIsEnded(t *testing.T) {
	t.Parallel()
	for name, readsOn := range map[string]bool{"goes on with a read": true, "goes on with its commit": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, with(ledgertest.Postgres(t), "idle_in_transaction_session_timeout=3s"))
			other := ledgertest.OpenAt(t, s.DSN())
			frozen, thaw := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var runs, before atomic.Int32 // before: calls up to and including the one that freezes
			answered := make(chan error)
			go func() {
				answered <- s.Write(t.Context(), func(tx *ledger.Tx) error {
					runs.Add(1)
					if _, err := number(t.Context(), tx, `SELECT count(*) FROM events`); err != nil {
						return err
					}
					if err := note(t.Context(), tx, "frozen"); err != nil {
						return err
					}
					once.Do(func() {
						before.Store(runs.Load())
						close(frozen)
					})
					<-thaw
					if readsOn {
						_, err := number(t.Context(), tx, `SELECT count(*) FROM events`)
						return err
					}
					return nil
				})
			}()
			<-frozen
			write(t, other, func(tx *ledger.Tx) error { return note(t.Context(), tx, "other") })
			close(thaw)
			err := <-answered
			want := []string{"other"}
			if err == nil {
				want = append(want, "frozen")
			}
			if err != nil && (readsOn || !errors.Is(err, ledger.ErrUnknown)) {
				t.Errorf("the frozen one: %v", err)
			}
			if again := runs.Load() - before.Load(); readsOn && again != 1 {
				t.Errorf("its function was run %d times again, want 1", again)
			}
			wantActors(t, other, want...)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "later") })
			wantActors(t, other, append(want, "later")...)
		})
	}
}

// TestPostgresConflictIsExplainedInTheLog: where a row is not as a transaction expected, the server's log
// says so.
func TestPostgresConflictIsExplainedInTheLog(t *testing.T) {
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	s := openAt(t, server.URL())
	write(t, s, func(tx *ledger.Tx) error {
		return errors.Join(tx.Insert(insertSeen, "a", int64(1)), tx.Insert(insertSeen, "b", int64(1)))
	})
	for _, rows := range [][]string{{"a"}, {"a", "b"}} {
		err := s.Write(t.Context(), func(tx *ledger.Tx) (err error) {
			for _, boot := range rows {
				err = errors.Join(err, tx.Put(swapSeen, boot, int64(7), int64(8)))
			}
			return err
		})
		if !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
	}
	log := server.Log()
	const why = "ERROR:  jobledger: rolled back, since a row of presence has changed meanwhile"
	if n := strings.Count(log, why); n != 2 || strings.Contains(log, "division") {
		t.Errorf("it says so %d times, want 2:\n%s", n, log)
	}
}
