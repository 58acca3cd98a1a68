package witness_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/witness"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
)

const actor = "cli:ada@build7"

func sealed(t testing.TB) *commands.Service {
	t.Helper()
	s := &commands.Service{Store: ledgertest.Open(t)}
	if _, err := s.StartSealing(t.Context(), actor, "jobs.example.com", "", ""); err != nil {
		t.Fatal(err)
	}
	return s
}

func enqueue(t testing.TB, s *commands.Service) {
	t.Helper()
	if _, err := s.Enqueue(t.Context(), actor, commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
}

// forge makes w believe that it saw another history.
func forge(t testing.TB, w *witness.Witness, store *ledger.Store) {
	t.Helper()
	seen, err := w.Look(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	text, err := proof.Checkpoint{Origin: seen.Origin, Size: 1, Root: proof.LeafHash([]byte("another"))}.Sign()
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(seen.File+".new", text, 0o600)
	if err == nil {
		err = os.Rename(seen.File+".new", seen.File)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWitnessGoesOnWithTheLedger(t *testing.T) {
	s, w := sealed(t), witness.In(t.TempDir())
	for size := range int64(3) {
		seen, err := w.Advance(t.Context(), s.Store)
		if err != nil || seen.Alarm() || seen.Now.Size != size+1 || (seen.Before != nil) != (size > 0) {
			t.Fatalf("got %+v, %v", seen, err)
		}
		if seen.Before != nil && seen.Before.Checkpoint.Size != size {
			t.Errorf("it saw %d events before, want %d", seen.Before.Checkpoint.Size, size)
		}
		enqueue(t, s)
	}
	forge(t, w, s.Store)
	for range 2 { // an alarm stays
		if seen, err := w.Advance(t.Context(), s.Store); err != nil || !seen.Alarm() {
			t.Fatalf("another history: got %+v, %v", seen, err)
		}
	}
	forged, err := w.Look(t.Context(), s.Store)
	if err == nil {
		_, err = w.Accept(t.Context(), s.Store, actor, "known", time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	saw, _ := forged.Before.Checkpoint.Sign()
	seen, err := w.Advance(t.Context(), s.Store)
	if err != nil || seen.Alarm() || !seen.Before.Same() || len(seen.History) != 1 || seen.Pending() != "" {
		t.Fatalf("accepted: got %+v, %v", seen, err)
	}
	if r := seen.History[0]; r.What != "differs" || !r.Accepted || r.Actor != actor || r.Reason != "known" ||
		r.Checkpoint != string(saw) {
		t.Errorf("the history has %+v", r)
	}
}

// Of two processes that look at once, the slower one must not put its older checkpoint in the place of the
// newer one.
func TestWitnessReplacesOnlyWhatItRead(t *testing.T) {
	s, w := sealed(t), witness.In(t.TempDir())
	seen, err := w.Advance(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(seen.File)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s)
	if _, err := w.Advance(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	newer, err := os.ReadFile(seen.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range [][]byte{was, nil} {
		if changed, err := w.Replace(seen.File, read, was); !changed {
			t.Errorf("it replaced what it had not read: %v", err)
		}
	}
	if _, err := w.Replace(seen.File, newer, was); err != nil {
		t.Error(err)
	}
	files, err := os.ReadDir(filepath.Dir(seen.File))
	if err != nil || len(files) != 2 { // the checkpoint, and the name of the ledger at its address
		t.Errorf("files left: %v, %v", files, err)
	}
}

func TestWitnessDoesNothingWhileSealingIsOff(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	for _, w := range []*witness.Witness{witness.In(folder), witness.In("")} {
		seen, err := w.Advance(t.Context(), ledgertest.Open(t))
		if err != nil || seen.Sealed || seen.Alarm() {
			t.Errorf("got %+v, %v", seen, err)
		}
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("it made a folder")
	}
}

// A file of the witness that cannot be used is not a fault of the ledger: Begin warns once, and lets it go
// on.
func TestGuardWarnsOfItsOwnFiles(t *testing.T) {
	s := sealed(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := t.TempDir()
	seen, err := witness.In(damaged).Advance(t.Context(), s.Store)
	if err == nil {
		err = os.WriteFile(seen.File, []byte("nonsense"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{file, "", damaged} {
		var warnings []string
		g := witness.Guard{Witness: witness.In(state), Store: s.Store,
			Warn: func(text string) { warnings = append(warnings, text) }}
		for range 2 {
			if err := g.Begin(t.Context()); err != nil {
				t.Errorf("%q: %v", state, err)
			}
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], "not a witness of the ledger: witness: ") {
			t.Errorf("%q: %q", state, warnings)
		}
		_, err := witness.In(state).Look(t.Context(), s.Store)
		if _, ok := errors.AsType[*witness.FileError](err); !ok {
			t.Errorf("%q: %v is not a FileError", state, err)
		}
	}
}

// A ledger that is exchanged while a worker runs stops it, without waiting for its end.
func TestGuardStopsARunningWorker(t *testing.T) {
	s, w := sealed(t), witness.In(t.TempDir())
	g := witness.Guard{Witness: w, Store: s.Store, Every: time.Millisecond,
		Warn: func(text string) { t.Error(text) }}
	if err := g.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	end := g.Watch(t.Context(), sync.OnceFunc(func() { close(stopped) }))
	forge(t, w, s.Store)
	<-stopped
	if _, ok := errors.AsType[*witness.AlarmError](end()); !ok {
		t.Error("no alarm at the end")
	}
}

func TestGuardLooksAtTheEnd(t *testing.T) {
	s, w := sealed(t), witness.In(t.TempDir())
	g := witness.Guard{Witness: w, Store: s.Store, Warn: func(text string) { t.Error(text) }}
	if err := g.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := g.Watch(t.Context(), func() { t.Error("stopped") })
	enqueue(t, s)
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if seen, err := w.Look(t.Context(), s.Store); err != nil || seen.Before == nil ||
		seen.Before.Checkpoint.Size != 2 {
		t.Errorf("after the end: got %+v, %v", seen, err)
	}
	end = g.Watch(t.Context(), func() { t.Error("stopped") })
	forge(t, w, s.Store)
	if err := end(); err == nil {
		t.Error("no alarm")
	}
}
