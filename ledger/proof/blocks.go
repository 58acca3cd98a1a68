package proof

import "fmt"

// Blocks is a [Source] of the hashes of all blocks, from number 0 on, without leaves: of a tree whose size is
// a multiple of [BlockSize].
type Blocks []Hash

// Blocks is that of [Source].
func (b Blocks) Blocks(from, to int64) ([]Hash, error) {
	return b[min(from, int64(len(b))):min(to, int64(len(b)))], nil
}

// Leaves is that of [Source].
func (b Blocks) Leaves(from, to int64) ([]Hash, error) {
	return nil, fmt.Errorf("proof: the leaves %d to %d are not known, only their block", from, to-1)
}
