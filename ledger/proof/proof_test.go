package proof_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	_ "jobledger/ledger/ledgertest" // its flags
	"jobledger/ledger/proof"
)

// memory is a source in memory that counts the leaves read.
type memory struct {
	leaves []proof.Hash
	read   int
}

func newMemory(size int) *memory {
	m := new(memory)
	for i := range size {
		m.leaves = append(m.leaves, proof.LeafHash(leaf(i)))
	}
	return m
}

func leaf(i int) []byte { return fmt.Appendf(nil, `{"pos":%d}`, i+1) }

func (m *memory) Blocks(from, to int64) (list []proof.Hash, err error) {
	for n := from; n < to; n++ {
		h, err := proof.BlockHash(m.leaves[n*proof.BlockSize : (n+1)*proof.BlockSize])
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

func (m *memory) Leaves(from, to int64) ([]proof.Hash, error) {
	if from/proof.BlockSize != (to-1)/proof.BlockSize || from >= to {
		return nil, fmt.Errorf("leaves %d to %d are not in one block", from, to)
	}
	m.read += int(to - from)
	return m.leaves[from:to], nil
}

// root follows the definition of RFC 6962: the largest power of two below the size splits the leaves.
func root(leaves []proof.Hash) proof.Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	k := 1 << (bits.Len(uint(len(leaves)-1)) - 1)
	return tlog.NodeHash(root(leaves[:k]), root(leaves[k:]))
}

const most = 3000 // the largest tree in these tests

func TestTreeRootIsThatOfRFC6962(t *testing.T) {
	m := newMemory(most)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, most), rapid.SampledFrom([]int{0, 1, 2, 255, 256, 257, 511, 512, 513,
			768, 1024, 2048, 2560})).Draw(t, "size")
		got, err := proof.NewTree(m).Root(int64(size))
		if err != nil {
			t.Fatal(err)
		}
		if want := root(m.leaves[:size]); got != want {
			t.Fatalf("the root of %d leaves is %v, want %v", size, got, want)
		}
	})
}

func TestTreeProvesInclusion(t *testing.T) {
	m := newMemory(most)
	tree := proof.NewTree(m)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, most).Draw(t, "size")
		index := rapid.Int64Range(0, size-1).Draw(t, "index")
		path, err := tree.Inclusion(size, index)
		if err != nil {
			t.Fatal(err)
		}
		head := root(m.leaves[:size])
		if err := tlog.CheckRecord(path, size, head, index, m.leaves[index]); err != nil {
			t.Fatalf("leaf %d of %d: %v", index, size, err)
		}
	})
}

// A proof reads the leaves of its own block and of the last one; the ledger stores the hashes of all other
// blocks.
func TestTreeReadsTwoBlocksOfLeaves(t *testing.T) {
	m := newMemory(most)
	if _, err := proof.NewTree(m).Inclusion(most, 300); err != nil {
		t.Fatal(err)
	}
	if m.read > 2*proof.BlockSize {
		t.Errorf("%d leaves were read, want at most %d", m.read, 2*proof.BlockSize)
	}
}

func TestTreeReportsMissingHashes(t *testing.T) {
	short := &lacking{newMemory(most)}
	if _, err := proof.NewTree(short).Root(most); err == nil {
		t.Error("a root without a block's hash")
	}
	if _, err := proof.NewTree(short).Root(most % proof.BlockSize); err == nil {
		t.Error("a root without a leaf's hash")
	}
}

// lacking is a source that returns one hash less than it is asked for.
type lacking struct{ *memory }

func (s *lacking) Blocks(from, to int64) ([]proof.Hash, error) { return s.memory.Blocks(from, to-1) }

func (s *lacking) Leaves(from, to int64) ([]proof.Hash, error) {
	list, err := s.memory.Leaves(from, to)
	return list[:len(list)-1], err
}

func keys(t testing.TB, name string) (private, public string) {
	t.Helper()
	private, public, err := proof.GenerateKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func TestCheckpointIsReadAsItWasSigned(t *testing.T) {
	oldPrivate, oldPublic := keys(t, "jobledger/a")
	newPrivate, newPublic := keys(t, "jobledger/a")
	_, stranger := keys(t, "jobledger/b")
	c := proof.Checkpoint{Origin: "jobledger/01JA", Size: 17, Root: proof.LeafHash(leaf(1))}
	text, err := c.Sign(oldPrivate, newPrivate)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := proof.ParseCheckpoint(text, oldPublic, newPublic); err != nil || got != c {
		t.Errorf("read as %+v, %v", got, err)
	}
	if _, err := proof.ParseCheckpoint(text, stranger); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("signed by another: got %v", err)
	}
	unsigned, err := c.Sign()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("jobledger/01JA\n17\n%s\n\n", c.Root); string(unsigned) != want {
		t.Errorf("unsigned: %q, want %q", unsigned, want)
	}
	if got, err := proof.ParseCheckpoint(unsigned); err != nil || got != c {
		t.Errorf("unsigned: read as %+v, %v", got, err)
	}
	if _, err := proof.ParseCheckpoint(unsigned, oldPublic); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("unsigned, with a key: got %v", err)
	}
	if public, err := proof.PublicKey(oldPrivate + "\n"); err != nil || public != oldPublic {
		t.Errorf("the public key is %q, %v, want %q", public, err, oldPublic)
	}
	if _, err := c.Sign("PRIVATE+KEY+x"); err == nil || strings.Contains(err.Error(), "+x") {
		t.Errorf("a bad key: got %v, want an error that does not show it", err)
	}
}

func TestCheckpointTextThatIsNoneIsRefused(t *testing.T) {
	good := "jobledger/a\n17\n" + proof.Hash{}.String() + "\n\n"
	if _, err := proof.ParseCheckpoint([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"jobledger/a\n", ""}, {"jobledger/a", ""}, {"jobledger/a", "a b"}, {"jobledger/a", "a+b"},
		{"jobledger/a", strings.Repeat("a", 256)}, {"jobledger/a", "a\x00"}, {"jobledger/a", "\xff"},
		{"17", "017"}, {"17", "-1"}, {"17", "+17"}, {"17", "1e3"}, {"17", "9223372036854775808"}, {"17", ""},
		{"AAAA", "AAA"}, {"=\n", "\n"}, {"\n\n", "\n"}, {"\n\n", "\nmore\n\n"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if c, err := proof.ParseCheckpoint([]byte(text)); !errors.Is(err, proof.ErrInvalid) {
			t.Errorf("%q: read as %+v, %v", text, c, err)
		}
	}
}

// sample is a signed proof of some events in a tree of 700.
func sample(t testing.TB) (text []byte, public string) {
	t.Helper()
	private, public := keys(t, "jobledger/a")
	m := newMemory(700)
	tree := proof.NewTree(m)
	head, err := tree.Root(700)
	if err != nil {
		t.Fatal(err)
	}
	var p proof.Proof
	c := proof.Checkpoint{Origin: "jobledger/a", Size: 700, Root: head}
	if p.Checkpoint, err = c.Sign(private); err != nil {
		t.Fatal(err)
	}
	for _, index := range []int64{3, 256, 699} {
		path, err := tree.Inclusion(700, index)
		if err != nil {
			t.Fatal(err)
		}
		p.Entries = append(p.Entries, proof.Entry{Leaf: leaf(int(index)), Index: index, Path: path})
	}
	return p.Append(nil), public
}

func check(text []byte, public string) error {
	p, err := proof.Parse(text)
	if err == nil {
		_, err = p.Check(public)
	}
	return err
}

func TestProofHoldsAndNoChangedByteDoes(t *testing.T) {
	text, public := sample(t)
	if err := check(text, public); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for _, b := range []byte{text[i] ^ 1, text[i] ^ 0x20, '\n', '0'} {
			changed := bytes.Clone(text)
			if changed[i] = b; b == text[i] {
				continue
			}
			if err := check(changed, public); !errors.Is(err, proof.ErrInvalid) {
				t.Fatalf("byte %d changed from %q to %q: got %v", i, text[i], b, err)
			}
		}
	}
	for i := range text {
		if err := check(text[:i], public); !errors.Is(err, proof.ErrInvalid) {
			t.Fatalf("cut after %d bytes: got %v", i, err)
		}
	}
}

func TestProofWithEntriesTwiceOrOutOfOrderIsRefused(t *testing.T) {
	text, public := sample(t)
	p, err := proof.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p.Entries = append(p.Entries, p.Entries[0])
	if _, err := p.Check(public); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("an entry twice: got %v", err)
	}
	p.Entries = p.Entries[:3]
	slices.Reverse(p.Entries)
	if _, err := p.Check(public); !errors.Is(err, proof.ErrInvalid) {
		t.Errorf("out of order: got %v", err)
	}
}

// A proof that can be parsed is formatted as the same text.
func FuzzParse(f *testing.F) {
	text, public := sample(f)
	f.Add(text)
	f.Add([]byte("jobledger-proof/v1\n{}\nindex 0\n\na\n1\n" + proof.LeafHash([]byte("{}")).String() + "\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := proof.Parse(text)
		if err != nil {
			if !errors.Is(err, proof.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if again := p.Append(nil); !bytes.Equal(again, text) {
			t.Fatalf("read from %q and written as %q", text, again)
		}
		if _, err := p.Check(public); err != nil && !errors.Is(err, proof.ErrInvalid) {
			t.Fatal(err)
		}
	})
}

// A file of checkpoints is read as checkpoints or refused, whatever is in it; each says what was signed.
func FuzzCheckpoints(f *testing.F) {
	private, _, err := proof.GenerateKey("jobs.example.com")
	if err != nil {
		f.Fatal(err)
	}
	c := proof.Checkpoint{Origin: "jobs.example.com", Size: 257, Root: proof.LeafHash([]byte("{}"))}
	for _, keys := range [][]string{nil, {private}} {
		text, err := c.Sign(keys...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(append(bytes.Clone(text), text...))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		texts, err := proof.SplitCheckpoints(file)
		if err != nil {
			return
		}
		for _, text := range texts {
			c, err := proof.ParseCheckpoint(text)
			if err != nil {
				t.Fatalf("%q was taken for a checkpoint: %v", text, err)
			}
			again, err := c.Sign()
			if err != nil || !bytes.HasPrefix(text, again) {
				t.Fatalf("read from %q and written as %q, %v", text, again, err)
			}
		}
	})
}
