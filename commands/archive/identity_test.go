package archive_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// identityOf returns what identifies the ledger.
func identityOf(t *testing.T, store *ledger.Store) (is projection.Identity) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		is, err = projection.IdentityOf(t.Context(), tx, math.MaxInt64)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// A ledger has one id from its first event on, also once this event has left it; another ledger has another.
func TestLedgerKeepsItsID(t *testing.T) {
	t.Parallel()
	s, dir := &commands.Service{Store: ledgertest.Open(t)}, filepath.Join(t.TempDir(), "archive")
	if is := identityOf(t, s.Store); is != (projection.Identity{}) {
		t.Errorf("before the first event: %+v", is)
	}
	first, err := s.Enqueue(t.Context(), actor, commands.Enqueue{Queue: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	id := identityOf(t, s.Store).ID
	if len(id) != 32 {
		t.Fatalf("the id is %q", id)
	}
	job := first[0].Job.ID
	_, err = s.Apply(t.Context(), actor, job, commands.Cancel{Reason: "over"})
	if err == nil {
		_, err = s.Apply(t.Context(), actor, job, commands.Erase{Reason: "asked for"})
	}
	if err == nil {
		_, err = s.Enqueue(t.Context(), actor, slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, 300)...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if is := identityOf(t, s.Store); is != (projection.Identity{ID: id, Erasures: 1}) {
		t.Errorf("%+v, was %s", is, id)
	}
	if _, err := archive.Close(t.Context(), s, 256, archive.Options{Dir: dir, Actor: actor}); err != nil {
		t.Fatal(err)
	}
	m := archive.Removal{Service: s, Dir: dir, Actor: actor}
	if gone, err := m.All(t.Context(), nil); err != nil || gone.Jobs != 1 {
		t.Fatalf("removed %+v, %v", gone, err)
	}
	if is := identityOf(t, s.Store); is.ID != id {
		t.Errorf("without its first event the ledger is %+v, was %s", is, id)
	}
	verify(t, s.Store)
	whole, err := archive.Reader{Store: s.Store, Dir: dir}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if is := identityOf(t, whole); is.ID != id {
		t.Errorf("a whole copy is %+v, the ledger %s", is, id)
	}
	other := &commands.Service{Store: ledgertest.Open(t)}
	if _, err := other.Enqueue(t.Context(), actor, commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	if is := identityOf(t, other.Store); is.ID == id || is.ID == "" {
		t.Errorf("another ledger is %+v", is)
	}
}
