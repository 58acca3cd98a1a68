package ledger_test

import (
	"bytes"
	"os"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// The -wal file cannot be reset while a reader holds a snapshot; when the reader ends, writers truncate the
// file.
func TestWALShrinksAfterALongRead(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	s := open(t)
	size := func() int64 {
		info, err := os.Stat(s.Path() + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	put := func(n int) {
		write(t, s, func(tx *ledger.Tx) error {
			if err := tx.PutBody(tx.Next(), nil, bytes.Repeat([]byte{byte(n)}, 1<<20)); err != nil {
				return err
			}
			return note(t.Context(), tx, "a")
		})
	}
	put(0)
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		if _, err := tx.Tail(t.Context()); err != nil {
			return err
		}
		for n := range 24 {
			put(n + 1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size() < 24<<20 {
		t.Fatalf("the reader stood, and the -wal file has %d bytes only", size())
	}
	for range 3 {
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	}
	if size() > 17<<20 {
		t.Errorf("the reader has gone, and the -wal file still has %d bytes", size())
	}
}

// TrimWAL empties the -wal file that a long read let grow, when no reader and no writer is in the way, and
// waits for none of them.
func TestTrimWAL(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := open(t)
	trim := func() bool {
		t.Helper()
		trimmed, err := s.TrimWAL(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return trimmed
	}
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	if trim() {
		t.Error("a small -wal file was trimmed")
	}
	read(t, s, func(tx *ledger.Tx) error {
		if _, err := tx.Tail(t.Context()); err != nil {
			return err
		}
		for range 20 {
			write(t, s, func(tx *ledger.Tx) error {
				if err := tx.PutBody(tx.Next(), nil, make([]byte, 1<<20)); err != nil {
					return err
				}
				return note(t.Context(), tx, "a")
			})
		}
		if trim() {
			t.Error("trimmed next to a reader")
		}
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
		return nil
	})
	write(t, s, func(tx *ledger.Tx) error {
		if err := note(t.Context(), tx, "c"); err != nil {
			return err
		}
		if trim() {
			t.Error("trimmed next to a writer")
		}
		return nil
	})
	if !trim() {
		t.Error("nothing is in the way, and it was not trimmed")
	}
	if info, err := os.Stat(s.Path() + "-wal"); err != nil || info.Size() != 0 {
		t.Errorf("the -wal file: %v, %v", info, err)
	}
}
