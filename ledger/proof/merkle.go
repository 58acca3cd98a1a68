package proof

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// BlockSize is how many leaves are below a hash that a ledger stores.
const BlockSize = 1 << blockLevel

// blockLevel is the level of a block's hash in the tree; leaves are at level 0.
const blockLevel = 8

// Hash is a SHA-256 hash of a leaf or of a node of the tree.
type Hash = tlog.Hash

// LeafHash returns the hash of the leaf with this text.
func LeafHash(leaf []byte) Hash { return tlog.RecordHash(leaf) }

// BlockHash returns the hash of the block with these leaves, which are [BlockSize].
func BlockHash(leaves []Hash) (Hash, error) {
	if len(leaves) != BlockSize {
		return Hash{}, fmt.Errorf("proof: a block has %d leaves, not %d", BlockSize, len(leaves))
	}
	return fold(leaves), nil
}

// Source gives what a ledger stores of its tree.
type Source interface {
	// Blocks returns the hashes of the blocks from, …, to-1. Block n has the leaves from n·BlockSize on.
	Blocks(from, to int64) ([]Hash, error)
	// Leaves returns the hashes of the leaves from, …, to-1. They are in one block.
	Leaves(from, to int64) ([]Hash, error)
}

// Tree is the hash tree over the leaves of a source. It is not for concurrent use.
type Tree struct {
	source Source
	leaves []Hash        // of the block that was read last
	begin  int64         // the first of them
	upper  map[node]Hash // what was computed of the levels above that of the blocks
}

// node is a hash in the tree: number n of so many levels above that of the blocks.
type node struct {
	level int
	n     int64
}

// NewTree returns the tree over the leaves of source.
func NewTree(source Source) *Tree { return &Tree{source: source, upper: make(map[node]Hash)} }

// Root returns the root of the tree over the first size leaves.
func (t *Tree) Root(size int64) (Hash, error) {
	return tlog.TreeHash(size, t.reader(size))
}

// Inclusion returns the hashes that prove that leaf number index is in the tree over the first size leaves.
func (t *Tree) Inclusion(size, index int64) ([]Hash, error) {
	return tlog.ProveRecord(size, index, t.reader(size))
}

// Consistency returns the hashes that prove that the tree over the first size leaves begins with the one over
// the first older leaves.
func (t *Tree) Consistency(size, older int64) ([]Hash, error) {
	return tlog.ProveTree(size, older, t.reader(size))
}

// reader gives the stored hashes of tlog for a tree of size leaves.
func (t *Tree) reader(size int64) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		hashes := make([]Hash, len(indexes))
		for i, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			var err error
			if level >= blockLevel {
				hashes[i], err = t.above(level-blockLevel, n)
			} else {
				hashes[i], err = t.within(level, n, size)
			}
			if err != nil {
				return nil, err
			}
		}
		return hashes, nil
	})
}

// maxBlocks is how many hashes of blocks are read at once: 128 kB.
const maxBlocks = 1 << 12

// above returns hash n of the level that is levels above that of the blocks.
func (t *Tree) above(level int, n int64) (h Hash, err error) {
	at := node{level, n}
	h, ok := t.upper[at]
	if !ok {
		if h, err = t.compute(level, n); err == nil {
			t.upper[at] = h
		}
	}
	return h, err
}

func (t *Tree) compute(level int, n int64) (Hash, error) {
	from, count := n<<level, int64(1)<<level
	if count > maxBlocks {
		left, err := t.above(level-1, 2*n)
		if err != nil {
			return Hash{}, err
		}
		right, err := t.above(level-1, 2*n+1)
		return tlog.NodeHash(left, right), err
	}
	hashes, err := t.source.Blocks(from, from+count)
	if err == nil && int64(len(hashes)) != count {
		err = fmt.Errorf("proof: %d of the %d blocks from %d on", len(hashes), count, from)
	}
	if err != nil {
		return Hash{}, err
	}
	return fold(hashes), nil
}

// within returns hash n of a level below that of the blocks, of a tree of size leaves.
func (t *Tree) within(level int, n, size int64) (Hash, error) {
	from, count := n<<level, int64(1)<<level
	begin := from &^ (BlockSize - 1)
	if end := min(begin+BlockSize, size); t.begin != begin || t.begin+int64(len(t.leaves)) < end {
		leaves, err := t.source.Leaves(begin, end)
		if err == nil && int64(len(leaves)) != end-begin {
			err = fmt.Errorf("proof: %d of the %d leaves from %d on", len(leaves), end-begin, begin)
		}
		if err != nil {
			return Hash{}, err
		}
		t.begin, t.leaves = begin, leaves
	}
	return fold(t.leaves[from-begin : from-begin+count]), nil
}

// fold returns the root above hashes, whose number is a power of two.
func fold(hashes []Hash) Hash {
	level := append([]Hash(nil), hashes...)
	for len(level) > 1 {
		for i := range len(level) / 2 {
			level[i] = tlog.NodeHash(level[2*i], level[2*i+1])
		}
		level = level[:len(level)/2]
	}
	return level[0]
}
