package tree_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
)

const (
	size  = 2*proof.BlockSize + 40
	actor = "cli:ann@host"
)

// grow appends events to s, and returns the hashes of their leaves.
func grow(t testing.TB, s *ledger.Store, events int) (leaves []proof.Hash) {
	t.Helper()
	err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		leaves = nil
		for i := range events {
			var body event.Body = &event.QueuePaused{Queue: "mail", Reason: "é<&>"}
			if i%2 == 1 {
				body = &event.Restored{From: "backup.db", Events: int64(i)}
			}
			e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: body}
			if err := tx.Append(t.Context(), e); err != nil {
				return err
			}
			leaves = append(leaves, proof.LeafHash(e.AppendLeaf(nil)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return leaves
}

func read(t testing.TB, s *ledger.Store, fn func(ctx context.Context, tx *ledger.Tx, tr *tree.Tree) error) {
	t.Helper()
	err := s.Read(context.Background(), func(tx *ledger.Tx) error {
		tr, err := tree.New(context.Background(), tx, nil)
		if err != nil {
			return err
		}
		return fn(context.Background(), tx, tr)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// plainRoot is the root as tlog computes it from all hashes, without blocks.
func plainRoot(t testing.TB, leaves []proof.Hash) proof.Hash {
	t.Helper()
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) (list []tlog.Hash, err error) {
		for _, i := range indexes {
			list = append(list, stored[i])
		}
		return list, nil
	})
	for i, h := range leaves {
		more, err := tlog.StoredHashesForRecordHash(int64(i), h, read)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
	}
	root, err := tlog.TreeHash(int64(len(leaves)), read)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func extend(t testing.TB, s *ledger.Store, upTo int64) int64 {
	t.Helper()
	added, err := tree.Extend(t.Context(), s, upTo, nil)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// TestTreeRootIsThatOfTheEvents: at any size, however many blocks are stored.
func TestTreeRootIsThatOfTheEvents(t *testing.T) {
	s := ledgertest.Open(t)
	leaves := grow(t, s, size)
	for _, blocks := range []int64{0, 1, 2} {
		if blocks > 0 {
			if added := extend(t, s, blocks*proof.BlockSize+3); added != 1 {
				t.Fatalf("%d blocks added, want 1", added)
			}
		}
		read(t, s, func(ctx context.Context, _ *ledger.Tx, tr *tree.Tree) error {
			if tr.Size() != size || tr.Sealed() != blocks*proof.BlockSize {
				t.Errorf("size %d, sealed %d", tr.Size(), tr.Sealed())
			}
			if _, err := tr.Root(ctx, size+1); !errors.Is(err, tree.ErrBeyond) {
				t.Errorf("beyond the end: got %v", err)
			}
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(0, size), rapid.SampledFrom([]int{0, 1, 255, 256, 257, 512, size})).
					Draw(rt, "size")
				got, err := tr.Root(ctx, int64(n))
				if err != nil {
					rt.Fatal(err)
				}
				if want := plainRoot(t, leaves[:n]); got != want {
					rt.Fatalf("root of %d with %d blocks: got %v, want %v", n, blocks, got, want)
				}
			})
			return nil
		})
	}
}

func TestTreeProvesEvents(t *testing.T) {
	s := ledgertest.Open(t)
	leaves := grow(t, s, size)
	extend(t, s, 0)
	positions := []int64{1, 2, 256, 257, 300, 513, 540}
	read(t, s, func(ctx context.Context, _ *ledger.Tx, tr *tree.Tree) error {
		entries, err := tr.Prove(ctx, 545, positions...)
		if err != nil {
			return err
		}
		c := proof.Checkpoint{Origin: "jobledger/a", Size: 545, Root: plainRoot(t, leaves[:545])}
		p := proof.Proof{Entries: entries}
		if p.Checkpoint, err = c.Sign(); err != nil {
			return err
		}
		if got, err := p.Check(); err != nil || got != c {
			t.Errorf("got %+v, %v", got, err)
		}
		for i, e := range entries {
			if proof.LeafHash(e.Leaf) != leaves[positions[i]-1] || !bytes.Contains(e.Leaf, []byte(actor)) {
				t.Errorf("entry %d is %s", i, e.Leaf)
			}
		}
		for _, pos := range []int64{0, -1, 546} {
			if _, err := tr.Prove(ctx, 545, pos); !errors.Is(err, tree.ErrBeyond) {
				t.Errorf("event %d of 545: got %v", pos, err)
			}
		}
		if _, err := tr.Prove(ctx, size+1, 1); !errors.Is(err, tree.ErrBeyond) {
			t.Errorf("beyond the end: got %v", err)
		}
		return nil
	})
}

// edited is a source in which one leaf differs from what was sealed.
type edited struct {
	tree.Events
	index int64
}

func (s edited) Leaves(ctx context.Context, from, to int64, fn func([]byte) error) error {
	i := from
	return s.Events.Leaves(ctx, from, to, func(leaf []byte) error {
		if i == s.index {
			leaf = append(slices.Clone(leaf), ' ')
		}
		i++
		return fn(leaf)
	})
}

func TestTreeProvesNoEditedEvent(t *testing.T) {
	s := ledgertest.Open(t)
	grow(t, s, size)
	extend(t, s, 0)
	read(t, s, func(ctx context.Context, tx *ledger.Tx, _ *tree.Tree) error {
		tr, err := tree.New(ctx, tx, edited{tree.Events{Tx: tx}, 299})
		if err != nil {
			return err
		}
		for pos, want := range map[int64]error{300: ledger.ErrDamaged, 301: ledger.ErrDamaged, 256: nil} {
			if _, err := tr.Prove(ctx, size, pos); !errors.Is(err, want) {
				t.Errorf("event %d: got %v, want %v", pos, err, want)
			}
		}
		return nil
	})
}

func TestExtendByTwoAtOnceWritesTheSame(t *testing.T) {
	s := ledgertest.Open(t)
	leaves := grow(t, s, size)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := tree.Extend(context.Background(), s, 0, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	read(t, s, func(ctx context.Context, tx *ledger.Tx, _ *tree.Tree) error {
		got, err := tree.StoredBlocks(ctx, tx, 0, 9)
		for n := range got {
			want, err := proof.BlockHash(leaves[n*proof.BlockSize : (n+1)*proof.BlockSize])
			if err != nil || got[n] != want {
				t.Errorf("block %d is %v, want %v, %v", n, got[n], want, err)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d blocks, want 2", len(got))
		}
		return err
	})
	if added := extend(t, s, 0); added != 0 {
		t.Errorf("%d blocks more", added)
	}
	err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		return tree.AppendBlocks(t.Context(), tx, 1, []proof.Hash{{1}, {2}})
	})
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("another hash of a block: got %v", err)
	}
	err = s.Write(t.Context(), func(tx *ledger.Tx) error {
		return tree.AppendBlocks(t.Context(), tx, 3, []proof.Hash{{1}})
	})
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a block after a gap: got %v", err)
	}
}

func TestSealsAreKeptInOrder(t *testing.T) {
	s := ledgertest.Open(t)
	at := ledgertest.Epoch.Add(time.Hour)
	s.Now = func() time.Time { return at }
	grow(t, s, 3)
	want := []tree.Seal{{N: 1, Size: 2, At: at, Root: proof.Hash{1}},
		{N: 2, Size: 3, At: at.Add(-time.Minute), Root: proof.Hash{1}, Note: "é\nnote\n\n", Place: "to:x"},
		{N: 3, Size: 3, At: at, Root: proof.Hash{2}},
		{N: 4, Size: 2, At: at, Root: proof.Hash{3}, Note: "smaller", Place: "é"}}
	for _, some := range [][]tree.Seal{want[:1], want[1:]} {
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			added, err := tree.AppendSeals(t.Context(), tx, slices.Clone(some)...)
			if err == nil && !slices.Equal(added, some) {
				t.Errorf("added %v, want %v", added, some)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read(t, s, func(ctx context.Context, tx *ledger.Tx, _ *tree.Tree) error {
		var got []tree.Seal
		for seal, err := range tree.Seals(ctx, tx) {
			if err != nil {
				return err
			}
			got = append(got, seal)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if last, ok, err := tree.LastSeal(ctx, tx); last != want[2] || !ok || err != nil {
			t.Errorf("the last is %v, %v, %v", last, ok, err)
		}
		if last, ok, err := tree.LastHandedOut(ctx, tx); last != want[1] || !ok || err != nil {
			t.Errorf("the last that was handed out is %v, %v, %v", last, ok, err)
		}
		return nil
	})
}

// TestTreeRootsAreThoseOfEachSize: with some blocks stored and others not.
func TestTreeRootsAreThoseOfEachSize(t *testing.T) {
	s := ledgertest.Open(t)
	leaves := grow(t, s, size)
	extend(t, s, proof.BlockSize)
	read(t, s, func(ctx context.Context, _ *ledger.Tx, tr *tree.Tree) error {
		rapid.Check(t, func(rt *rapid.T) {
			sizes := rapid.SliceOf(rapid.Int64Range(0, size)).Draw(rt, "sizes")
			slices.Sort(sizes)
			roots, err := tr.Roots(ctx, sizes)
			if err != nil || len(roots) != len(sizes) {
				rt.Fatal(roots, err)
			}
			for i, n := range sizes {
				if want := plainRoot(t, leaves[:n]); roots[i] != want {
					rt.Fatalf("root of %d: got %v, want %v", n, roots[i], want)
				}
			}
		})
		for _, bad := range [][]int64{{size + 1}, {300, 299}} {
			if roots, err := tr.Roots(ctx, bad); !errors.Is(err, tree.ErrBeyond) {
				t.Errorf("sizes %v: got %v, %v", bad, roots, err)
			}
		}
		return nil
	})
}
