package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
// that; ErrMissing if a file is not there that may have it; segment.ErrDamaged.
//
// What an index does not have is believed only after the index was made again from its file, which a process
// does once: see checkedIndexes.
func History(ctx context.Context, store *ledger.Store, dir, prefix string) ([]event.Event, File, error) {
	files, err := List(ctx, store, dir)
	if err != nil {
		return nil, File{}, err
	}
	prefix = strings.ToUpper(prefix)
	events, newest, err := history(ctx, store, files, prefix, (*File).index)
	goesOn := err == nil && !ended(events) && newest.Hi < files[len(files)-1].Hi // the next file has it
	if goesOn || errors.Is(err, commands.ErrNoJob) {
		may, mayErr := mayHaveLeft(ctx, store, prefix)
		if mayErr != nil {
			return nil, File{}, mayErr
		}
		if may {
			return history(ctx, store, files, prefix, (*File).checkedIndex)
		}
	}
	return events, newest, err
}

// mayHaveLeft reports whether a job whose id is, or begins with, prefix may have left the ledger.
func mayHaveLeft(ctx context.Context, store *ledger.Store, prefix string) (may bool, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		may, err = past.MayHaveLeft(ctx, tx, event.JobID(prefix))
		return err
	})
	return may, err
}

// history is History by the indexes that indexOf returns.
func history(ctx context.Context, store *ledger.Store, files []File, prefix string,
	indexOf func(*File) (*segment.Index, error)) ([]event.Event, File, error) {
	var id event.JobID
	var newest File
	var index *segment.Index
	for _, f := range slices.Backward(files) {
		x, err := indexOf(&f)
		if err != nil {
			return nil, f, err
		}
		for _, found := range x.WithPrefix(prefix, 2) {
			if id != "" && found != id {
				return nil, f, fmt.Errorf("%w: the ids %s and %s begin with %s", commands.ErrConflict, id, found, prefix)
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
		return nil, File{}, fmt.Errorf("%w: no archived job has the id %s", commands.ErrNoJob, prefix)
	}
	events, err := newest.eventsOf(ctx, store, index, id)
	return events, newest, err
}

// Ends returns what gives a commands.Service the states in which archived jobs ended: see its field Archived.
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

// index returns the index of f, as it is next to the file.
func (f *File) index() (*segment.Index, error) {
	return f.indexBy(func(sum [32]byte) (*segment.Index, error) {
		return segment.LoadIndex(f.Path, f.Range(), sum)
	})
}

// checkedIndexes are the indexes that this process has made from their files, which takes some 5 µs an event:
// by the SHA-256 of the file, the one of the index. So each file is read once. An index that is not the one
// next to the file is kept itself; archive check replaces that.
var checkedIndexes struct {
	sync.Mutex
	by map[[32]byte]checkedIndex
}

type checkedIndex struct {
	sum  [32]byte
	kept *segment.Index // nil: it is next to the file
}

// checkedIndex returns the index of f as the file itself has it.
func (f *File) checkedIndex() (*segment.Index, error) {
	return f.indexBy(func(sum [32]byte) (*segment.Index, error) {
		checkedIndexes.Lock()
		defer checkedIndexes.Unlock()
		known, ok := checkedIndexes.by[sum]
		if ok && known.kept != nil {
			return known.kept, nil
		}
		there, err := os.ReadFile(segment.IndexName(f.Path))
		if err == nil && ok && sha256.Sum256(there) == known.sum {
			return segment.ParseIndex(there)
		}
		facts, x, err := segment.CheckFile(f.Path, f.Range())
		if err != nil {
			return nil, err
		}
		if facts.SHA256 != sum {
			return nil, fmt.Errorf("%w: %s has the SHA-256 %x, and the ledger names %s", segment.ErrDamaged, f.Path,
				facts.SHA256, f.SHA256)
		}
		known = checkedIndex{sum: sha256.Sum256(x.Encode(nil))}
		if sha256.Sum256(there) != known.sum {
			known.kept = x
		}
		if checkedIndexes.by == nil {
			checkedIndexes.by = make(map[[32]byte]checkedIndex)
		}
		checkedIndexes.by[sum] = known
		return x, nil
	})
}

// indexBy returns what load does for the SHA-256 of f.
func (f *File) indexBy(load func(sum [32]byte) (*segment.Index, error)) (*segment.Index, error) {
	var sum [32]byte
	if n, err := hex.Decode(sum[:], []byte(f.SHA256)); err != nil || n != len(sum) {
		return nil, fmt.Errorf("%w: the ledger names no SHA-256 of %s", segment.ErrDamaged, f.Path)
	}
	x, err := (*segment.Index)(nil), error(fs.ErrNotExist)
	if f.State != Missing {
		x, err = load(sum)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: the events %d to %d, from %s to %s, are in %s", ErrMissing, f.Lo+1, f.Hi,
			event.FormatTime(f.FirstAt), event.FormatTime(f.LastAt), f.Path)
	}
	return x, err
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
		if err := f.compareSum(file); err != nil {
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

// compareSum compares the whole file with the SHA-256 that the ledger names.
func (f *File) compareSum(file io.Reader) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
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
	var stored []proof.Hash
	err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
		stored, err = tree.StoredBlocks(ctx, tx, first/proof.BlockSize, first/proof.BlockSize+1)
		return err
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
