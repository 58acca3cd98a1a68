package ledger_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

func TestStoredEventsRoundTrip(t *testing.T) {
	s := open(t)
	want := ledgertest.StorableEvents(t)
	write(t, s, func(tx *ledger.Tx) error {
		for i := range want {
			e := &want[i]
			e.Pos, e.At, e.Actor = tx.Next(), tx.At(), "cli:ann@höst"
			if err := tx.Append(t.Context(), *e); err != nil {
				return err
			}
		}
		return nil
	})
	for _, e := range want { // a required field that is missing is read as its default
		switch body := e.Body.(type) {
		case *event.Enqueued:
			if body.MaxAttempts == 0 {
				body.RunAt, body.MaxAttempts = e.At, 5
			}
		case *event.Claimed:
			if body.LeaseUntil.IsZero() {
				body.LeaseUntil = e.At.Add(time.Minute)
			}
		case *event.Heartbeat:
			if body.LeaseUntil.IsZero() {
				body.LeaseUntil = e.At.Add(time.Minute)
			}
		}
	}
	if got := events(t, s, ledger.Filter{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s\nwant %s", shown(got), shown(want))
	}
}

func TestStoredEventsOmitDefaults(t *testing.T) {
	s := open(t)
	var want []event.Event
	write(t, s, func(tx *ledger.Tx) error {
		want = nil
		for _, body := range []event.Body{
			&event.Enqueued{RunAt: tx.At(), MaxAttempts: 5}, &event.Enqueued{RunAt: tx.At().Add(1000), MaxAttempts: 4},
			&event.Claimed{LeaseUntil: tx.At().Add(time.Minute)}, &event.Claimed{LeaseUntil: tx.At().Add(time.Hour),
				MaxRuntime: time.Second},
			&event.Heartbeat{LeaseUntil: tx.At().Add(time.Minute)},
			&event.Heartbeat{LeaseUntil: tx.At().Add(time.Hour)},
		} {
			want = append(want, event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:ann@host", Body: body})
			if err := tx.Append(t.Context(), want[len(want)-1]); err != nil {
				return err
			}
		}
		return nil
	})
	if got := events(t, s, ledger.Filter{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s\nwant %s", shown(got), shown(want))
	}
	var stored []bool
	read(t, s, func(tx *ledger.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT data IS NOT NULL FROM events ORDER BY pos`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			stored = append(stored, false)
			if err := rows.Scan(&stored[len(stored)-1]); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if want := []bool{false, true, false, true, false, true}; !reflect.DeepEqual(stored, want) {
		t.Errorf("there is data: %v, want %v", stored, want)
	}
}

func TestLinesComeInPages(t *testing.T) {
	t.Parallel()
	s := ledgertest.Open(t)
	const jobs = 9000
	large := bytes.Repeat([]byte("x"), 1<<20)
	body := func(n int64) []byte {
		if n%1000 == 0 {
			return large
		}
		return fmt.Append(nil, n)
	}
	err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		for n := int64(1); n <= jobs; n++ {
			e := event.Event{Pos: n, N: n, Job: event.JobID(fmt.Sprintf("01KDY9FY88TH%014d", n)), Seq: 1, At: tx.At(),
				Actor: "a", To: event.Queued, Body: &event.Enqueued{Queue: "q"}}
			if err := tx.PutBody(n, []byte("salt"), body(n)); err != nil {
				return err
			}
			if err := tx.Append(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []ledger.Filter{{}, {After: 5}, {Until: 4001}, {After: 3999, Until: 8001}} {
		next := f.After + 1
		for line, err := range s.Lines(t.Context(), f, true) {
			if err != nil {
				t.Fatal(err)
			}
			if line.Pos != next || !bytes.Equal(line.Body, body(next)) || string(line.Salt) != "salt" {
				t.Fatalf("%+v: got event %d with %d bytes, want %d", f, line.Pos, len(line.Body), next)
			}
			next++
		}
		want := f.Until
		if want == 0 {
			want = jobs
		}
		if next != want+1 {
			t.Errorf("%+v: ended before %d", f, next)
		}
	}
}
