package ledger_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// TestALineIsExactToTheByte: whatever a payload is, it comes back.
func TestALineIsExactToTheByte(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, body := range [][]byte{{}, {0}, every, []byte("\u2028\ufeff\ufffd<&>\"\\\x7f\u0080"), []byte("😀\r\n"), {0xed, 0xa0, 0x80}, bytes.Repeat([]byte{'x'}, 1<<20), nil} {
		for _, b := range []ledger.Body{&ledger.Enqueued{Queue: "q"}, &ledger.Succeeded{}} {
			line := ledger.Line{Event: ledger.Event{Pos: 1, Job: "J", Seq: 1, At: ledgertest.Epoch, Actor: "a", To: ledger.Queued, Body: b}, Body: body}
			if b.Kind() == ledger.KindEnqueued && body != nil {
				line.Salt = []byte{1, 0xff}
			}
			text, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			var back ledger.Line
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatalf("%.200s: %v", text, err)
			}
			if !bytes.Equal(back.Body, body) || (back.Body == nil) != (body == nil) || !bytes.Equal(back.Salt, line.Salt) {
				t.Errorf("%s: got %.80q, want %.80q", b.Kind(), back.Body, body)
			}
		}
	}
}

// TestLinesComeInPages: more events than a page has, and more bytes, all of them in order and each with its own body.
func TestLinesComeInPages(t *testing.T) {
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
			e := ledger.Event{Pos: n, N: n, Job: ledger.JobID(fmt.Sprintf("01KDY9FY88TH%014d", n)), Seq: 1, At: tx.At(), Actor: "a", To: ledger.Queued, Body: &ledger.Enqueued{Queue: "q"}}
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
