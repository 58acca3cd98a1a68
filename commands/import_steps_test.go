package commands_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"testing"

	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// largeHistory is a history with so many payloads of 1 MiB.
func largeHistory(t *testing.T, payloads int) *ledger.Store {
	t.Helper()
	s := &commands.Service{Store: openFast(t)}
	for n := range payloads {
		_, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail",
			Payload: bytes.Repeat([]byte{byte('a' + n)}, 1<<20), Key: fmt.Sprint("key-", n)})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s.Store
}

// The -wal file of an import in steps stays small, and the ledger has its guards again.
func TestImportInStepsKeepsTheWALSmall(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	source := largeHistory(t, 25)
	store, most := openFast(t), int64(0)
	watched := func(yield func(event.Line, error) bool) {
		for line, err := range source.Lines(t.Context(), ledger.Filter{}, true) {
			if info, err := os.Stat(store.Path() + "-wal"); err == nil {
				most = max(most, info.Size())
			}
			if !yield(line, err) {
				return
			}
		}
	}
	s := &commands.Service{Store: store, Staging: true}
	if _, err := load.Import(t.Context(), s, "cli:test", "x.jsonl", watched, nil); err != nil {
		t.Fatal(err)
	}
	if most == 0 || most > 16<<20 {
		t.Errorf("the -wal file had up to %d bytes", most)
	}
	wantClean(t, store)
}

// A wrong line is named by an import in steps too, in whichever step it is. What only one transaction can
// find out is reported as such.
func TestImportInStepsNamesTheLine(t *testing.T) {
	defer func(before int) { load.Step = before }(load.Step)
	load.Step = 3
	source := &commands.Service{Store: openFast(t)}
	for n := range 10 {
		_, err := source.Enqueue(t.Context(), "cli:test",
			commands.Enqueue{Queue: "mail", Key: fmt.Sprint("key-", n)})
		if err != nil {
			t.Fatal(err)
		}
	}
	text := exported(t, source.Store)
	take := func(text []byte) error {
		s := &commands.Service{Store: openFast(t), Staging: true}
		_, err := load.Import(t.Context(), s, "cli:test", "x.jsonl", iter.Seq2[event.Line, error](parsed(text)),
			nil)
		return err
	}
	for n := range int64(10) {
		wrong := bytes.Replace(text, []byte(fmt.Sprintf(`"pos":%d,`, n+1)), []byte(`"pos":77,`), 1)
		if line, ok := errors.AsType[*load.LineError](take(wrong)); !ok || line.Line != n+1 {
			t.Errorf("line %d is wrong: %v", n+1, line)
		}
	}
	illegal := bytes.Replace(text, []byte(`"to_state":"queued"`), []byte(`"to_state":"failed"`), 1)
	if line, ok := errors.AsType[*load.LineError](take(illegal)); !ok || line.Line != 1 {
		t.Errorf("the state of line 1 is wrong: %v", line)
	}
	twice := bytes.Replace(text, []byte(`"key-9"`), []byte(`"key-1"`), 1)
	if err := take(twice); !errors.Is(err, load.ErrLoadAtOnce) {
		t.Errorf("two jobs have the same key: %v", err)
	}
	if err := take(text); err != nil {
		t.Error(err)
	}
}
