package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// JSON is stored as the text that was written: digests cover it, and people may have to read it.
func TestPostgresKeepsTextAndBytes(t *testing.T) {
	s := onPostgres(t)
	s.SetGroupTime(time.Hour)
	var want []string
	var notes []func(*ledger.Tx) error
	for _, reason := range []string{"<&>  \u2028 é \U0001F600", `\u0000 is six characters`,
		strings.Repeat(`"\`, 1000), "\x01\x7f\t\r\n", "\u00a0\ufeff"} {
		body := &event.QueuePaused{Queue: "mail", Reason: reason}
		text, _ := event.AppendStored(nil, body)
		want = append(want, string(text))
		notes = append(notes, func(tx *ledger.Tx) error {
			return tx.Append(t.Context(), event.Event{Pos: tx.Next(), At: tx.At(), Actor: reason, Body: body})
		})
	}
	write(t, s, notes[0]) // one row alone, and the others in one statement
	wantErrors(t, writeGroup(t, s, notes[1:]...), nil, nil, nil, nil)
	conn := connect(t, s.DSN())
	for i, text := range want {
		if got := ask[string](t, conn, `SELECT data::text FROM jobledger.events WHERE pos = $1`, i+1); got != text {
			t.Errorf("event %d: got %s, want %s", i+1, got, text)
		}
	}
	for i, e := range events(t, s, ledger.Filter{}) {
		if text, _ := event.AppendStored(nil, e.Body); string(text) != want[i] ||
			e.Actor != e.Body.(*event.QueuePaused).Reason {
			t.Errorf("event %d: read %s of %q, want %s", i+1, text, e.Actor, want[i])
		}
	}

	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	bodies := [][]byte{all, {}, bytes.Repeat(all, 4096), {0}, []byte(`\x41`), []byte("\\000")}
	runs := 0
	put := func(first int64, bodies ...[]byte) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			runs++
			for i, body := range bodies {
				if err := tx.PutBody(first+int64(i), all[:16], body); err != nil {
					return err
				}
			}
			return nil
		}
	}
	write(t, s, put(1, bodies...))
	for i, body := range bodies {
		write(t, s, put(int64(101+i), body))
	}
	if runs != 1+len(bodies) { // otherwise the lists were refused and only single rows were written
		t.Errorf("functions were run %d times, want %d", runs, 1+len(bodies))
	}
	read(t, s, func(tx *ledger.Tx) error {
		for i, want := range bodies {
			for _, pos := range []int64{int64(1 + i), int64(101 + i)} {
				salt, got, ok, err := tx.Body(t.Context(), pos)
				if err != nil || !ok || !bytes.Equal(got, want) || !bytes.Equal(salt, all[:16]) {
					t.Errorf("body %d: got %d bytes, salt %x, %t, %v, want %d bytes", pos, len(got), salt, ok, err,
						len(want))
				}
			}
		}
		return nil
	})
}

// Text that PostgreSQL cannot store fails alone, whatever else the transaction contains.
func TestPostgresUnstorableTextFailsAlone(t *testing.T) {
	s := onPostgres(t)
	s.SetGroupTime(time.Hour)
	act := func(actor, reason string) func(*ledger.Tx) error {
		return func(tx *ledger.Tx) error {
			return tx.Append(t.Context(), event.Event{Pos: tx.Next(), At: tx.At(), Actor: actor,
				Body: &event.QueuePaused{Queue: "mail", Reason: reason}})
		}
	}
	for name, fn := range map[string]func(*ledger.Tx) error{
		"a NUL in a name": act("\x00", "r"), "a NUL in JSON": act("x", "\x00"),
		"invalid UTF-8": act("\xff", "r"),
	} {
		errs := writeGroup(t, s, act("a", "r"), fn, act("b", "r"))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil {
			t.Errorf("%s: got %v, want an error of the second alone", name, errs)
		}
	}
	wantActors(t, s, "a", "b", "a", "b", "a", "b")
}

// Small numbers are not stored as null, in a list of one row and in a list of many, whatever their type.
func TestPostgresBulkTakesSmallNumbers(t *testing.T) {
	s := onPostgres(t)
	for _, rows := range []int{1, 3} {
		write(t, s, func(tx *ledger.Tx) error {
			for i := range rows {
				if err := tx.Insert(insertSeen, fmt.Sprint(rows, i), 7); err != nil {
					return err
				}
			}
			n, err := number(t.Context(), tx, `SELECT count(*) FROM presence WHERE seen_at = 7`)
			if n != int64(rows) {
				t.Errorf("%d rows, want %d", n, rows)
			}
			_, deleted := tx.Exec(`DELETE FROM presence`)
			return errors.Join(err, deleted)
		})
	}
}

// The clocks of hosts differ, so all of them use the server's clock. Inside the bubble of package synctest
// the host's clock shows the year 2000.
func TestPostgresServerClockIsUsed(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	conn := connect(t, dsn)
	before := ask[time.Time](t, conn, `SELECT clock_timestamp()`)
	synctest.Test(t, func(t *testing.T) {
		s := ledgertest.OpenAt(t, dsn)
		var first, then time.Time
		write(t, s, func(tx *ledger.Tx) error {
			first = tx.Now()
			if _, err := tx.Exec(`SELECT pg_sleep(0.01)`); err != nil {
				return err
			}
			if then = tx.Now(); !then.Equal(first) {
				t.Errorf("a second reading in one transaction: %s, the first was %s", then, first)
			}
			return note(t.Context(), tx, "a")
		})
		read(t, s, func(tx *ledger.Tx) error {
			then = tx.Now()
			return nil
		})
		if !then.After(first) {
			t.Errorf("a later read is at %s, the write was at %s", then, first)
		}
		own := ledgertest.OpenAt(t, dsn)
		own.Now = func() time.Time { return time.Now().AddDate(100, 0, 0) }
		write(t, own, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	})
	after := ask[time.Time](t, conn, `SELECT clock_timestamp()`)
	var at []time.Time
	for _, e := range events(t, openAt(t, dsn), ledger.Filter{}) {
		at = append(at, e.At)
	}
	if at[0].Before(before.Truncate(time.Microsecond)) || at[0].After(after) {
		t.Errorf("the event is at %s, which is not between %s and %s", at[0], before, after)
	}
	if at[1].Year() != 2100 {
		t.Errorf("with a clock of one's own: %s", at[1])
	}
}

// The views find the events of one job by indexes.
func TestPostgresViewsFindAJobByIndex(t *testing.T) {
	t.Parallel()
	s := onPostgres(t)
	conn := connect(t, s.DSN())
	execute(t, conn, `SET search_path = jobledger`)
	execute(t, conn, `SET enable_seqscan = off`) // the tables are empty
	for view, wants := range map[string][]string{
		"history": {"jobs_id_key", "events_job_seq_key"}, "attempts": {"jobs_id_key", "events_job_seq_key"},
	} {
		const job = `'01ARZ3NDEKTSV4RRFFQ69G5FAV'`
		rows, err := conn.Query(t.Context(), `EXPLAIN SELECT * FROM `+view+` WHERE job = `+job)
		must(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		plan := strings.Join(lines, "\n")
		for _, want := range wants {
			if !strings.Contains(plan, want) {
				t.Errorf("%s does not use %s:\n%s", view, want, plan)
			}
		}
	}
}
