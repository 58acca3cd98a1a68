package commands_test

import (
	"errors"
	"os"
	"reflect"
	"testing"

	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
)

// rootOf returns the root over the first size events; size 0 means all.
func rootOf(t testing.TB, s *ledger.Store, size int64) (root proof.Hash, of int64) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		tr, err := tree.New(t.Context(), tx, nil)
		if err != nil {
			return err
		}
		if of = size; of == 0 {
			of = tr.Size()
		}
		root, err = tr.Root(t.Context(), of)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, of
}

func blocksOf(t testing.TB, s *ledger.Store) (n int64) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		n, err = tree.BlockCount(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (q *queue) mails(jobs int) {
	q.T.Helper()
	if _, err := q.Service.Enqueue(q.T.Context(), "cli:test", manyMails(jobs)...); err != nil {
		q.T.Fatal(err)
	}
}

func manyMails(jobs int) []commands.Enqueue {
	list := make([]commands.Enqueue, jobs)
	for i := range list {
		list[i] = commands.Enqueue{Queue: "mail"}
	}
	return list
}

// TestSweepAddsBlocksWhereSealingIsOn: none while it is off, and those that are missing once it is on.
func TestSweepAddsBlocksWhereSealingIsOn(t *testing.T) {
	q := newQueue(t)
	q.mails(300)
	sweep := func(w *commands.Sweeper) {
		t.Helper()
		if _, err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep(&commands.Sweeper{Service: q.Service, Actor: "sweeper:test"})
	if n := blocksOf(t, q.Store); n != 0 {
		t.Errorf("%d blocks while sealing is off", n)
	}
	if _, err := q.StartSealing(t.Context(), "cli:test", "", "", ""); err != nil {
		t.Fatal(err)
	}
	w := &commands.Sweeper{Service: q.Service, Actor: "sweeper:test"}
	sweep(w)
	if n := blocksOf(t, q.Store); n != 1 {
		t.Errorf("%d blocks after a sweep, want 1", n)
	}
	q.mails(300)
	sweep(w)
	if n := blocksOf(t, q.Store); n != 1 {
		t.Errorf("%d blocks after another sweep within the minute, want 1", n)
	}
	sweep(&commands.Sweeper{Service: q.Service, Actor: "sweeper:test"})
	if n := blocksOf(t, q.Store); n != 2 {
		t.Errorf("%d blocks after the sweep of another, want 2", n)
	}
}

// TestSweepSealsInSteps: a long backlog must not keep a sweeper from reclaiming, or a busy queue from its
// processors.
func TestSweepSealsInSteps(t *testing.T) {
	q := newQueue(t)
	if _, err := q.StartSealing(t.Context(), "cli:test", "", "", ""); err != nil {
		t.Fatal(err)
	}
	q.mails(4 * proof.BlockSize)
	w := &commands.Sweeper{Service: q.Service, Actor: "sweeper:test", SealStep: 2*proof.BlockSize + 1}
	for _, want := range []int64{2, 4, 4} {
		if _, err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := blocksOf(t, q.Store); n != want {
			t.Errorf("%d blocks, want %d", n, want)
		}
	}
}

func TestSealNeedsSealing(t *testing.T) {
	q := newQueue(t)
	q.mails(3)
	if _, err := q.Seal(t.Context()); !errors.Is(err, commands.ErrNotSealing) {
		t.Errorf("seal: got %v", err)
	}
	if _, err := q.RotateSealingKey(t.Context(), "cli:test", "k", ""); !errors.Is(err, commands.ErrNotSealing) {
		t.Errorf("rotate: got %v", err)
	}
	private, public, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"a b", ""}, {"{a", ""}, {"a", "no key"}, {"a", private}} {
		if _, err := q.StartSealing(t.Context(), "cli:test", c[0], c[1], ""); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("start with %q: got %v", c, err)
		}
	}
	now, err := q.StartSealing(t.Context(), "cli:test", "a", "", "")
	if err != nil || !now.On || now.Origin != "a" || now.Pos != 4 {
		t.Errorf("started: %+v, %v", now, err)
	}
	if _, err := q.StartSealing(t.Context(), "cli:test", "a", "", ""); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("started twice: got %v", err)
	}
	if now, err = q.RotateSealingKey(t.Context(), "cli:test", public, ""); err != nil || now.Key != public {
		t.Errorf("rotated: %+v, %v", now, err)
	}
	first, err := q.Seal(t.Context())
	if want, size := rootOf(t, q.Store, 0); err != nil || first.Root != want || first.Size != size ||
		first.N != 2 {
		t.Errorf("sealed %+v, %v, want %v of %d", first, err, want, size)
	}
	if again, err := q.Seal(t.Context()); err != nil || again.N != 2 || again.Root != first.Root {
		t.Errorf("sealed again: %+v, %v", again, err)
	}
}

// TestEraseKeepsRoots: a leaf has digests of a payload, not the payload.
func TestEraseKeepsRoots(t *testing.T) {
	q := newQueue(t)
	j := q.enqueue(commands.Enqueue{Payload: []byte("a secret")})
	q.mails(300)
	if _, err := q.StartSealing(t.Context(), "cli:test", "", "", ""); err != nil {
		t.Fatal(err)
	}
	before, err := q.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Apply(t.Context(), "cli:test", j.ID, commands.Cancel{}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Apply(t.Context(), "cli:test", j.ID, commands.Erase{}); err != nil {
		t.Fatal(err)
	}
	if root, _ := rootOf(t, q.Store, before.Size); root != before.Root {
		t.Errorf("the root of %d events is %v, and was %v", before.Size, root, before.Root)
	}
	if _, err := q.Seal(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRootsAreTheSameOnBothEngines: an import keeps the text of every event.
func TestRootsAreTheSameOnBothEngines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(badNightFile)
	if err != nil {
		t.Fatal(err)
	}
	take := func(s *ledger.Store, text []byte) *commands.Service {
		service := &commands.Service{Store: s}
		if _, err := load.Import(t.Context(), service, "cli:test", "bad-night.jsonl", parsed(text),
			nil); err != nil {
			t.Fatal(err)
		}
		return service
	}
	one := take(ledgertest.OpenAt(t, t.TempDir()+"/jobs.db"), text)
	if _, err := one.StartSealing(t.Context(), "cli:test", "", "", ""); err != nil {
		t.Fatal(err)
	}
	seal, err := one.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var history []byte
	for line, err := range one.Store.Lines(t.Context(), ledger.Filter{}, true) {
		if err != nil {
			t.Fatal(err)
		}
		history = append(line.AppendJSON(history), '\n')
	}
	other := take(ledgertest.OpenAt(t, ledgertest.Postgres(t)), history)
	for _, size := range []int64{1, 255, 256, 257, seal.Size / 2, seal.Size} {
		want, _ := rootOf(t, one.Store, size)
		if got, _ := rootOf(t, other.Store, size); got != want {
			t.Errorf("the root of %d events is %v on PostgreSQL and %v on SQLite", size, got, want)
		}
	}
	if _, err := other.Seal(t.Context()); err != nil {
		t.Error(err)
	}
	if got, _ := rootOf(t, other.Store, seal.Size); got != seal.Root {
		t.Errorf("from blocks the root is %v, want %v", got, seal.Root)
	}
}

// TestCompleteIsEvents: what is read in bulk has the job and token that reading one by one finds, from any
// event to any other.
func TestCompleteIsEvents(t *testing.T) {
	text, err := os.ReadFile(badNightFile)
	if err != nil {
		t.Fatal(err)
	}
	service := &commands.Service{Store: ledgertest.Open(t)}
	if _, err := load.Import(t.Context(), service, "cli:test", "bad-night.jsonl", parsed(text),
		nil); err != nil {
		t.Fatal(err)
	}
	err = service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		windows := [][2]int64{{0, tail}, {1, tail}, {tail / 3, tail / 2}, {tail - 1, tail}, {700, 701}}
		for _, window := range windows {
			var want, got []event.Event
			f := ledger.Filter{After: window[0], Until: window[1]}
			for e, err := range tx.Events(t.Context(), f) {
				if err != nil {
					return err
				}
				want = append(want, e)
			}
			scan := ledger.Scan{After: window[0], Until: window[1]}
			for batch, err := range tx.Complete(t.Context(), scan) {
				if err != nil {
					return err
				}
				for _, e := range batch {
					got = append(got, e.Event)
				}
			}
			if len(got) != len(want) || int64(len(got)) != window[1]-window[0] {
				t.Fatalf("%d events of %v, want %d", len(got), window, len(want))
			}
			for i := range want {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("of %v, event %d is %+v, want %+v", window, want[i].Pos, got[i], want[i])
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
