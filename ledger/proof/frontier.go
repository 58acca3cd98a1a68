package proof

import (
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// Frontier is a hash tree to which leaves are added one by one. It holds one hash for each complete subtree
// along its right edge, at most as many as its size has bits. The zero Frontier has no leaves.
type Frontier struct {
	size  int64
	nodes []level // from the largest subtree on
}

// level is the hash of a whole subtree of 1<<height leaves.
type level struct {
	height int
	hash   Hash
}

// Size returns how many leaves there are.
func (f *Frontier) Size() int64 { return f.size }

// Clone returns a copy of f, to which leaves may be added without changing f.
func (f *Frontier) Clone() Frontier { return Frontier{f.size, slices.Clone(f.nodes)} }

// Add adds a leaf with this hash. If it ends a block, it returns the hash of that.
func (f *Frontier) Add(leaf Hash) (block Hash, whole bool) {
	f.joinBlocks()
	f.size++
	f.nodes = append(f.nodes, level{0, leaf})
	f.join(blockLevel)
	if last := f.nodes[len(f.nodes)-1]; last.height == blockLevel {
		return last.hash, true
	}
	return Hash{}, false
}

// AddBlock adds a whole block with this hash. The leaves before it are whole blocks.
func (f *Frontier) AddBlock(block Hash) {
	f.joinBlocks()
	f.size += BlockSize
	f.nodes = append(f.nodes, level{blockLevel, block})
}

// ReplaceBlock sets the hash of the block that the last call of Add ended.
func (f *Frontier) ReplaceBlock(block Hash) { f.nodes[len(f.nodes)-1].hash = block }

// joinBlocks joins the blocks that were left apart, so that the last one could be replaced.
func (f *Frontier) joinBlocks() { f.join(1 << 10) }

// join joins subtrees of the same height from the end on, up to a height.
func (f *Frontier) join(height int) {
	for n := len(f.nodes); n >= 2 && f.nodes[n-1].height == f.nodes[n-2].height &&
		f.nodes[n-1].height < height; n-- {
		f.nodes[n-2] = level{f.nodes[n-1].height + 1, tlog.NodeHash(f.nodes[n-2].hash, f.nodes[n-1].hash)}
		f.nodes = f.nodes[:n-1]
	}
}

// Root returns the root of the tree; that of no leaves is the hash of nothing.
func (f *Frontier) Root() Hash {
	if len(f.nodes) == 0 {
		h, _ := tlog.TreeHash(0, nil)
		return h
	}
	root := f.nodes[len(f.nodes)-1].hash
	for i := len(f.nodes) - 2; i >= 0; i-- {
		root = tlog.NodeHash(f.nodes[i].hash, root)
	}
	return root
}
