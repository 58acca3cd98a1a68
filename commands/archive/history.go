package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/segment"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/past"
)

// ErrMissing means that the file of a segment is not there.
var ErrMissing = errors.New("archive: a file is not there")

// fullID is how long an id is.
const fullID = 26

// History returns the events of the job whose id is, or begins with, prefix, up to the end of the newest
// segment that has it, which it returns too. It costs the indexes, and the members that have events of the
// job. These are compared with the blocks of the ledger; where earlier events are carried in, the whole file
// is compared with its SHA-256. Errors: commands.ErrNoJob; commands.ErrConflict if several jobs begin like
// that; ErrMissing if a file that may have it is missing; segment.ErrDamaged.
//
// Only an index that the ledger names by its digest is believed. Another one is made from its file, once in a
// process: see [Describe] and [WithNotice].
func History(ctx context.Context, store *ledger.Store, dir, prefix string) ([]event.Event, File, error) {
	prefix = strings.ToUpper(prefix)
	var files []File
	var may bool // be in the files
	err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if may, err = past.MayHaveLeft(ctx, tx, event.JobID(prefix)); err == nil && !may {
			var live []projection.Job
			live, err = projection.Find(ctx, tx, prefix, 1)
			may = len(live) > 0
		}
		if err == nil {
			files, err = ListIn(ctx, tx, dir)
		}
		return err
	})
	if err != nil {
		return nil, File{}, err
	}
	if !may {
		for i := range files {
			if _, err := files[i].sum(); err != nil {
				return nil, files[i], err
			}
		}
		files = nil
	}
	id, newest, index, err := newestOf(ctx, files, prefix)
	if err != nil {
		return nil, newest, err
	}
	events, err := newest.eventsOf(ctx, store, index, id)
	return events, newest, err
}

// newestOf returns the job whose id is, or begins with, prefix, and the newest file with lines of it.
func newestOf(ctx context.Context, files []File, prefix string) (id event.JobID, newest File,
	index *segment.Index, err error) {
	for _, f := range slices.Backward(files) {
		x, err := f.index(ctx)
		if err != nil {
			return "", f, nil, err
		}
		for _, found := range x.WithPrefix(prefix, 2) {
			if id != "" && found != id {
				return "", f, nil, fmt.Errorf("%w: the ids %s and %s begin with %s", commands.ErrConflict, id, found,
					prefix)
			}
			if id == "" {
				id, newest, index = found, f, x
			}
		}
		if id != "" && len(prefix) == fullID {
			break
		}
	}
	if id == "" {
		err = fmt.Errorf("%w: no archived job has the id %s", commands.ErrNoJob, prefix)
	}
	return id, newest, index, err
}

// Ends returns the function for the field Archived of a commands.Service: it looks up the states in which
// archived jobs ended.
func Ends(store *ledger.Store, dir string) func(context.Context, event.JobID) (event.State, error) {
	return func(ctx context.Context, id event.JobID) (event.State, error) {
		events, _, err := History(ctx, store, dir, string(id))
		if err != nil || len(events) == 0 {
			return 0, err
		}
		state := event.State(0)
		for _, e := range events {
			if e.Kind().HasSeq() {
				state = e.To
			}
		}
		if !state.Final() {
			return 0, fmt.Errorf("%w: %s", commands.ErrNoJob, id)
		}
		return state, nil
	}
}

// notice is the key of a context's function: see [WithNotice].
type notice struct{}

// WithNotice returns a context with which a question calls fn before it reads a whole file because its index
// is not there, or not the one that the ledger names, or the ledger names none: see [Describe].
func WithNotice(ctx context.Context, fn func(File)) context.Context {
	return context.WithValue(ctx, notice{}, fn)
}

// madeIndexes are the indexes that this process has made from their files, which takes some 5 µs an event: by
// the SHA-256 of the file, the digest of the index. So each file is read once.
var madeIndexes struct {
	sync.Mutex
	by map[[32]byte]madeIndex
}

type madeIndex struct {
	digest string
	kept   *segment.Index // nil: it is next to the file
}

// index returns the index of f as the file itself has it.
func (f *File) index(ctx context.Context) (*segment.Index, error) {
	sum, err := f.sum()
	if err != nil {
		return nil, err
	}
	if want := f.Parts["idx"]; want != "" {
		if x, err := segment.LoadIndex(f.Path, f.Range(), sum, want); err == nil {
			return x, nil
		}
	}
	madeIndexes.Lock()
	defer madeIndexes.Unlock()
	known := madeIndexes.by[sum]
	if known.kept != nil {
		return known.kept, nil
	}
	x, err := segment.LoadIndex(f.Path, f.Range(), sum, known.digest)
	if err == nil {
		return x, nil
	}
	if before, ok := ctx.Value(notice{}).(func(File)); ok {
		before(*f)
	}
	if x, err = segment.MakeIndex(f.Path, f.Range(), sum); err != nil {
		return nil, f.orMissing(err)
	}
	if want := f.Parts["idx"]; want != "" && x.Digest() != want {
		return nil, fmt.Errorf("%w: the index of %s is %s, and the ledger names %s", segment.ErrDamaged, f.Path,
			x.Digest(), want)
	}
	known = madeIndex{digest: x.Digest()}
	if _, err := segment.LoadIndex(f.Path, f.Range(), sum, known.digest); err != nil {
		known.kept = x
	}
	if madeIndexes.by == nil {
		madeIndexes.by = make(map[[32]byte]madeIndex)
	}
	madeIndexes.by[sum] = known
	return x, nil
}

// places returns an index of f for one who sees whether the events are where it says.
func (f *File) places(ctx context.Context) (*segment.Index, error) {
	if sum, err := f.sum(); err == nil && len(f.Parts) == 0 {
		if x, err := segment.ReadIndex(f.Path, f.Range(), sum); err == nil {
			return x, nil
		}
	}
	return f.index(ctx)
}

// sum returns the SHA-256 that the ledger names, if the file is there.
func (f *File) sum() (sum [32]byte, err error) {
	if n, err := hex.Decode(sum[:], []byte(f.SHA256)); err != nil || n != len(sum) {
		return sum, fmt.Errorf("%w: the ledger names no SHA-256 of %s", segment.ErrDamaged, f.Path)
	}
	if f.State == Missing {
		err = f.orMissing(fs.ErrNotExist)
	}
	return sum, err
}

// orMissing returns err, or an ErrMissing if a file is not there.
func (f *File) orMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: the events %d to %d, from %s to %s, are in %s", ErrMissing, f.Lo+1, f.Hi,
			event.FormatTime(f.FirstAt), event.FormatTime(f.LastAt), f.Path)
	}
	return err
}

// eventsOf returns the events of a job that f has.
func (f *File) eventsOf(ctx context.Context, store *ledger.Store, x *segment.Index, id event.JobID) (
	events []event.Event, err error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	n, places, _ := x.Find(id)
	if places[0].Offset < x.Own() { // no block has these lines as they are in the file
		sum := sha256.New()
		if _, err := io.Copy(sum, file); err != nil {
			return nil, err
		}
		if err := f.compareSum(sum); err != nil {
			return nil, err
		}
	}
	chain := make(chains)
	for _, place := range places {
		m, err := segment.ReadMember(file, place.Offset, place.Length)
		if err == nil {
			err = compareMember(ctx, store, f, m)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		for _, e := range m.Events {
			if e.Job != id {
				continue
			}
			if err := chain.add(&e); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
			e.N = n
			events = append(events, e)
		}
	}
	return events, nil
}

// compareSum compares the SHA-256 of the whole file with the one that the ledger names.
func (f *File) compareSum(sum hash.Hash) error {
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%w: %s has the SHA-256 %s, and the ledger names %s", segment.ErrDamaged, f.Path, got,
			f.SHA256)
	}
	return nil
}

// compareMember compares a member of the range with the block of the ledger, where it has one.
func compareMember(ctx context.Context, store *ledger.Store, f *File, m *segment.Member) error {
	first := m.Events[0].Pos
	if first <= f.Lo {
		return nil // compareSum did it
	}
	stored, err := ledger.Read(ctx, store, func(tx *ledger.Tx) ([]proof.Hash, error) {
		return tree.StoredBlocks(ctx, tx, first/proof.BlockSize, first/proof.BlockSize+1)
	})
	if err != nil || len(stored) == 0 {
		return err
	}
	leaves := make([]proof.Hash, len(m.Lines))
	for i, line := range m.Lines {
		leaves[i] = proof.LeafHash(line)
	}
	block, err := proof.BlockHash(leaves)
	if err != nil || block != stored[0] {
		return fmt.Errorf("%w: the events from %d on are not those of the ledger's block", segment.ErrDamaged,
			first)
	}
	return nil
}
