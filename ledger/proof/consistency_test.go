package proof_test

import (
	"bytes"
	"errors"
	"testing"

	"jobledger/ledger/proof"
)

// TestConsistencyHoldsBetweenAnySizes: the proof between two sizes holds, survives its text, and no changed
// byte of the text does. Whether its checkpoints are those that were kept is for the caller to compare: a
// size alone is not in the hashes.
func TestConsistencyHoldsBetweenAnySizes(t *testing.T) {
	m := newMemory(600)
	tree := proof.NewTree(m)
	checkpoint := func(size int64) []byte {
		h, err := tree.Root(size)
		if err != nil {
			t.Fatal(err)
		}
		text, err := proof.Checkpoint{Origin: "jobs.example.com", Size: size, Root: h}.Sign()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	check := func(text, older, newer []byte) error {
		c, err := proof.ParseConsistency(text)
		if err == nil {
			_, _, err = c.Check()
		}
		if err == nil && !(bytes.Equal(c.Old, older) && bytes.Equal(c.New, newer)) {
			err = proof.ErrInvalid
		}
		return err
	}
	sizes := []int64{1, 2, 3, 255, 256, 257, 300, 512, 599, 600}
	for i, size := range sizes {
		for _, older := range sizes[:i] {
			path, err := tree.Consistency(size, older)
			if err != nil {
				t.Fatal(err)
			}
			c := proof.Consistency{Path: path, Old: checkpoint(older), New: checkpoint(size)}
			text := c.Append(nil)
			if err := check(text, c.Old, c.New); err != nil || !proof.IsConsistency(text) {
				t.Fatalf("from %d to %d: %v\n%s", older, size, err, text)
			}
			for at := range text {
				changed := bytes.Clone(text)
				changed[at] ^= 1
				if err := check(changed, c.Old, c.New); !errors.Is(err, proof.ErrInvalid) {
					t.Fatalf("from %d to %d, byte %d changed: %v\n%s", older, size, at, err, changed)
				}
			}
			c.Old, c.New = c.New, c.Old
			if err := check(c.Append(nil), c.Old, c.New); !errors.Is(err, proof.ErrInvalid) {
				t.Errorf("from %d to %d, swapped: %v", size, older, err)
			}
		}
	}
}
