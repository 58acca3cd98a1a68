package proof_test

import (
	"testing"

	"jobledger/ledger/proof"
)

// TestFrontierRootIsThatOfTheTree: at every size, from the first leaf on and from the last whole block on.
func TestFrontierRootIsThatOfTheTree(t *testing.T) {
	m := newMemory(1300)
	var all proof.Frontier
	for i, h := range m.leaves {
		block, whole := all.Add(h)
		size := i + 1
		if whole != (size%proof.BlockSize == 0) {
			t.Fatalf("leaf %d ends a block: %t", i, whole)
		}
		if want, err := m.Blocks(int64(i/proof.BlockSize), int64(i/proof.BlockSize)+1); whole &&
			(err != nil || block != want[0]) {
			t.Fatalf("block %d is %v, want %v, %v", i/proof.BlockSize, block, want, err)
		}
		if size%97 != 0 && size%proof.BlockSize > 2 {
			continue
		}
		var late proof.Frontier
		blocks, err := m.Blocks(0, int64(size/proof.BlockSize))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			late.AddBlock(b)
		}
		for _, h := range m.leaves[late.Size():size] {
			late.Add(h)
		}
		if want := root(m.leaves[:size]); all.Root() != want || late.Root() != want || all.Size() != int64(size) {
			t.Fatalf("the roots of %d leaves are %v and %v, want %v", size, all.Root(), late.Root(), want)
		}
	}
}

// TestFrontierGoesOnWithAReplacedBlock: its root is that over the other hash.
func TestFrontierGoesOnWithAReplacedBlock(t *testing.T) {
	m := newMemory(3 * proof.BlockSize)
	other, err := proof.BlockHash(m.leaves[proof.BlockSize : 2*proof.BlockSize])
	if err != nil {
		t.Fatal(err)
	}
	var got, want proof.Frontier
	for n := range 3 {
		for _, h := range m.leaves[n*proof.BlockSize : (n+1)*proof.BlockSize] {
			got.Add(h)
		}
		if n == 2 {
			got.ReplaceBlock(other)
		}
		block, err := proof.BlockHash(m.leaves[n*proof.BlockSize : (n+1)*proof.BlockSize])
		if err != nil {
			t.Fatal(err)
		}
		if n == 2 {
			block = other
		}
		want.AddBlock(block)
	}
	if got.Root() != want.Root() {
		t.Errorf("got %v, want %v", got.Root(), want.Root())
	}
}
