package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// outcome is how a call of Write ended.
type outcome struct {
	err    error
	panic  any
	exited bool
}

// outcomeOf calls fn in a goroutine of its own.
func outcomeOf(fn func() error) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		o := outcome{exited: true}
		defer func() {
			if v := recover(); v != nil {
				o.panic, o.exited = v, false
			}
			done <- o
		}()
		o.err = fn()
		o.exited = false
	}()
	return done
}

func waitFor(t *testing.T, done <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(30 * time.Second):
		t.Fatal("Write has not ended")
		return outcome{}
	}
}

var errMine = errors.New("mine")

func TestWritePanicReachesTheCaller(t *testing.T) {
	s := open(t)
	for _, value := range []any{"text", errMine, nil} {
		o := waitFor(t, outcomeOf(func() error {
			return s.Write(t.Context(), func(tx *ledger.Tx) error {
				if err := note(t.Context(), tx, "cli:lost"); err != nil {
					return err
				}
				panic(value)
			})
		}))
		p, ok := o.panic.(ledger.Panic)
		if !ok || value != nil && p.Value != value || !strings.Contains(string(p.Stack), "thrown_test.go") {
			t.Errorf("panic(%v): got %+v, want a Panic with this value and the stack of the function", value, o)
		}
		if value == errMine && !errors.Is(p, errMine) {
			t.Errorf("panic(%v): %v does not unwrap to it", value, p)
		}
	}
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:after") })
	wantActors(t, s, "cli:after")
}

func TestWriteGoexitReachesTheCaller(t *testing.T) {
	s := open(t)
	for range 3 {
		o := waitFor(t, outcomeOf(func() error {
			return s.Write(t.Context(), func(tx *ledger.Tx) error {
				rows, err := tx.Query(t.Context(), `SELECT 1 UNION SELECT 2`) // which stay open
				if err != nil || !rows.Next() {
					return errors.Join(errMine, err)
				}
				if err := note(t.Context(), tx, "cli:lost"); err != nil {
					return err
				}
				runtime.Goexit()
				return nil
			})
		}))
		if !o.exited {
			t.Fatalf("got %+v, want that the goroutine has ended", o)
		}
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:after") })
	}
	wantActors(t, s, "cli:after", "cli:after", "cli:after")
}

// The functions of one group come to their own ends, whatever those of the others are.
func TestWriteThrownHarmsNobodyElse(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	const functions = 200
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	first := outcomeOf(func() error {
		return s.Write(ctx, func(tx *ledger.Tx) error {
			once.Do(func() { close(started); <-release })
			return note(ctx, tx, "cli:first")
		})
	})
	<-started
	var all [functions]<-chan outcome
	for i := range all {
		all[i] = outcomeOf(func() error {
			return s.Write(ctx, func(tx *ledger.Tx) error {
				if err := note(ctx, tx, fmt.Sprint("cli:", i)); err != nil {
					return err
				}
				switch i % 50 {
				case 10:
					panic(i)
				case 20:
					runtime.Goexit()
				case 30:
					return errMine
				}
				return nil
			})
		})
	}
	time.Sleep(50 * time.Millisecond) // all wait
	close(release)
	if o := waitFor(t, first); o != (outcome{}) {
		t.Errorf("the first function: got %+v", o)
	}
	want := 1
	for i := range all {
		o := waitFor(t, all[i])
		ok := o == outcome{}
		switch i % 50 {
		case 10:
			p, _ := o.panic.(ledger.Panic)
			ok = p.Value == any(i)
		case 20:
			ok = o.exited
		case 30:
			ok = errors.Is(o.err, errMine)
		default:
			want++
		}
		if !ok {
			t.Errorf("function %d: got %+v", i, o)
		}
	}
	if got := len(events(t, s, ledger.Filter{})); got != want {
		t.Errorf("got %d events, want %d", got, want)
	}
}

func TestReadPanicAndGoexitGiveTheConnectionBack(t *testing.T) {
	s := open(t)
	for i := range 12 { // more than there are connections
		for _, call := range []func(context.Context, func(*ledger.Tx) error) error{s.Read, s.Peek} {
			o := waitFor(t, outcomeOf(func() error {
				return call(t.Context(), func(tx *ledger.Tx) error {
					if _, err := tx.Query(t.Context(), `SELECT 1 UNION SELECT 2`); err != nil {
						return err
					}
					if i%2 == 0 {
						panic(i)
					}
					runtime.Goexit()
					return nil
				})
			}))
			if o.exited == (o.panic != nil) || o.err != nil {
				t.Fatalf("got %+v", o)
			}
		}
	}
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:after") })
	wantActors(t, s, "cli:after")
}

func TestStoreNowThatPanicsReachesTheCaller(t *testing.T) {
	s := open(t)
	fine := s.Now
	s.Now = func() time.Time { panic("no clock") }
	o := waitFor(t, outcomeOf(func() error {
		return s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:lost") })
	}))
	if p, _ := o.panic.(ledger.Panic); p.Value != "no clock" {
		t.Errorf("got %+v", o)
	}
	s.Now = fine
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:after") })
	wantActors(t, s, "cli:after")
}

func TestTxIsDoneAfterItsFunction(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	for i := range 3 {
		write(t, s, func(tx *ledger.Tx) error { return note(ctx, tx, fmt.Sprint("cli:", i)) })
	}
	keep := func(kept **ledger.Tx, rows **ledger.Rows) func(tx *ledger.Tx) error {
		return func(tx *ledger.Tx) (err error) {
			*kept = tx
			*rows, err = tx.Query(ctx, `SELECT pos FROM events ORDER BY pos`)
			if err == nil && !(*rows).Next() {
				err = errMine
			}
			return err
		}
	}
	for name, call := range map[string]func(context.Context, func(*ledger.Tx) error) error{
		"Read": s.Read, "Write": s.Write, "Peek": s.Peek,
	} {
		var tx *ledger.Tx
		var rows *ledger.Rows
		if err := call(ctx, keep(&tx, &rows)); err != nil {
			t.Fatal(name, err)
		}
		wantDone(t, name, tx)
		if more := rows.Next(); more || !errors.Is(rows.Err(), ledger.ErrTxDone) || rows.Close() != nil {
			t.Errorf("%s: its rows: got %t and %v", name, more, rows.Err())
		}
		// also while another function runs, in the same group or a later one
		write(t, s, func(*ledger.Tx) error {
			wantDone(t, name, tx)
			return nil
		})
	}

	var next func() (event.Event, error, bool)
	stop := func() {}
	read(t, s, func(tx *ledger.Tx) error {
		next, stop = iter.Pull2(tx.Events(ctx, ledger.Filter{}))
		_, err, _ := next()
		return err
	})
	if _, err, _ := next(); !errors.Is(err, ledger.ErrTxDone) {
		t.Errorf("an iterator that was left: got %v", err)
	}
	stop()
	wantActors(t, s, "cli:0", "cli:1", "cli:2")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantDone checks that tx can do nothing.
func wantDone(t *testing.T, name string, tx *ledger.Tx) {
	t.Helper()
	ctx := context.Background()
	_, queryErr := tx.Query(ctx, `SELECT 1`)
	_, stateErr := tx.QueryState(ctx, `SELECT 1`)
	_, execErr := tx.Exec(`SELECT 1`)
	_, tailErr := tx.Tail(ctx)
	_, nameErr := tx.Name(ctx, "x")
	_, _, _, bodyErr := tx.Body(ctx, 1)
	for what, err := range map[string]error{
		"Query": queryErr, "QueryState": stateErr, "Exec": execErr, "Tail": tailErr, "Name": nameErr,
		"Body": bodyErr, "PutBody": tx.PutBody(1, nil, nil), "Append": note(ctx, tx, "cli:late"),
		"Flush": tx.Flush(),
	} {
		if !errors.Is(err, ledger.ErrTxDone) {
			t.Errorf("%s after %s: got %v, want ErrTxDone", what, name, err)
		}
	}
}

func TestZeroStoreIsClosed(t *testing.T) {
	var s ledger.Store
	ctx := t.Context()
	fn := func(*ledger.Tx) error { return nil }
	_, vacuumErr := s.Vacuum(ctx, "x")
	_, checkpointErr := s.Checkpoint(ctx)
	for what, err := range map[string]error{
		"Read": s.Read(ctx, fn), "Write": s.Write(ctx, fn), "Peek": s.Peek(ctx, fn),
		"WriteRepair": s.WriteRepair(ctx, fn), "Vacuum": vacuumErr, "Checkpoint": checkpointErr,
	} {
		if !errors.Is(err, ledger.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", what, err)
		}
	}
	_, stop := s.Watch()
	stop()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
