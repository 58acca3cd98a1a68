package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/segment"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// partError means that a part of a file which is whole was wrong.
type partError struct{ error }

// State says how the file of a segment is.
type State string

// The states of a file. List does not read files, so it finds no damage but another size.
const (
	Present State = "present"
	Missing State = "missing"
	Damaged State = "damaged"
)

// File is the file of a segment.
type File struct {
	projection.Segment
	Path   string
	State  State
	Detail string // why it is Damaged
}

// Range returns the range of f.
func (f *File) Range() segment.Range { return segment.Range{Lo: f.Lo, Hi: f.Hi} }

// Suffix is what the name of the folder of an archive has behind the path of the ledger's file, unless
// another folder is given.
const Suffix = ".archive"

// List returns the files of all segments of the ledger, in order. They are in the folder dir.
func List(ctx context.Context, store *ledger.Store, dir string) (files []File, err error) {
	return ledger.Read(ctx, store, func(tx *ledger.Tx) ([]File, error) { return ListIn(ctx, tx, dir) })
}

// ListIn is List within a transaction.
func ListIn(ctx context.Context, tx *ledger.Tx, dir string) (files []File, err error) {
	segments, err := projection.Segments(ctx, tx, 0)
	for _, s := range segments {
		f := File{Segment: s, State: Present}
		f.Path = filepath.Join(dir, f.Range().Name())
		info, statErr := os.Stat(f.Path)
		switch {
		case errors.Is(statErr, fs.ErrNotExist):
			f.State = Missing
		case statErr != nil:
			return nil, statErr
		case info.Size() != s.Bytes:
			f.State = Damaged
			f.Detail = fmt.Sprintf("it has %d bytes, and the ledger names %d", info.Size(), s.Bytes)
		}
		files = append(files, f)
	}
	return files, err
}

// Check reads the file of each segment of the ledger and calls fn with what it found, in order, until fn
// fails. It compares every line with the hash tree, every file with the SHA-256 that the ledger names, the
// events of each job with each other, each file with the one before it, where what had not ended must be
// carried in, and with the events that are still in the ledger. It compares the parts of each file with the
// file and with the digests that the ledger names, and replaces those that are wrong.
func Check(ctx context.Context, store *ledger.Store, dir string, fn func(File) error) error {
	c := checker{store: store, whole: true}
	return c.all(ctx, dir, fn)
}

// checker goes through the files in order.
type checker struct {
	store  *ledger.Store
	whole  bool         // all files so far were
	blocks proof.Blocks // of these, from the first event on
	before chains       // of the last file; nil: it is not known

	describe func(File) error // records what a whole file is that was not described; nil: nothing is
	rest     bool             // only files that were not described are read
}

func (c *checker) all(ctx context.Context, dir string, fn func(File) error) error {
	files, err := List(ctx, c.store, dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		named := len(f.Parts) > 0
		if named && c.rest {
			c.whole, c.before = false, nil
			continue
		}
		whole := f.State != Missing // the file itself, even if a part of it was wrong
		if whole {
			err := c.file(ctx, &f)
			wrong, ok := errors.AsType[*partError](err)
			switch {
			case ok:
				f.State, f.Detail = Damaged, wrong.Error()
			case errors.Is(err, segment.ErrDamaged):
				f.State, f.Detail, whole = Damaged, err.Error(), false
			case err != nil:
				return err
			}
		}
		if !whole {
			c.whole, c.before = false, nil
		} else if !named && c.describe != nil {
			if err := c.describe(f); err != nil {
				return err
			}
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// file checks one file.
func (c *checker) file(ctx context.Context, f *File) error {
	facts, parts, err := segment.CheckFile(f.Path, f.Range())
	if err != nil {
		return err
	}
	differs := func(what string, got, want any) error {
		return fmt.Errorf("%w: its %s is %v, and the ledger names %v", segment.ErrDamaged, what, got, want)
	}
	switch sum := fmt.Sprintf("%x", facts.SHA256); {
	case sum != f.SHA256:
		return differs("SHA-256", sum, f.SHA256)
	case facts.Bytes != f.Bytes:
		return differs("size", facts.Bytes, f.Bytes)
	case facts.Jobs != f.Jobs:
		return differs("number of jobs", facts.Jobs, f.Jobs)
	case facts.Carried != f.CarriedIn:
		return differs("number of carried-in lines", facts.Carried, f.CarriedIn)
	case !facts.FirstAt.Equal(f.FirstAt) || !facts.LastAt.Equal(f.LastAt):
		return differs("time", facts.FirstAt, f.FirstAt)
	case len(f.Parts) > 0 && !maps.Equal(parts.Digests(), f.Parts):
		return differs("digests of its parts", parts.Digests(), f.Parts)
	}
	f.Parts = parts.Digests()
	if err := c.compareBlocks(ctx, f, &facts); err != nil {
		return err
	}
	if c.before, err = c.compareEvents(ctx, f); err != nil {
		return err
	}
	if err := segment.CheckParts(f.Path, parts); err != nil {
		return &partError{err}
	}
	return nil
}

// compareEvents compares the events of each job in a whole file with each other and with those of the file
// before it, if they are known, and those that are still in the ledger with it. If other events of their
// block have left, the ledger alone does not show that they are unchanged. It returns the chains of the file.
func (c *checker) compareEvents(ctx context.Context, f *File) (chains, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	now, begun := make(chains), false
	for m, err := range segment.Members(file) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		own := m.Events[0].Pos > f.Lo
		if own && !begun {
			begun = true
			err = now.continues(c.before)
		}
		for i := range m.Events {
			err = cmp.Or(err, now.add(&m.Events[i]))
		}
		if own && err == nil {
			err = c.compareLive(ctx, m)
		}
		if err != nil {
			return nil, err
		}
	}
	return now, nil
}

// compareLive compares the events of a member that are still in the ledger with it.
func (c *checker) compareLive(ctx context.Context, m *segment.Member) error {
	first, last := m.Events[0].Pos, m.Events[len(m.Events)-1].Pos
	var leaf []byte
	for line, err := range c.store.Lines(ctx, ledger.Filter{After: first - 1, Until: last}, false) {
		if err != nil {
			return err
		}
		if leaf = line.Event.AppendLeaf(leaf[:0]); !bytes.Equal(leaf, m.Lines[line.Pos-first]) {
			return fmt.Errorf("%w: the event %d in the ledger is not the one in the file", segment.ErrDamaged,
				line.Pos)
		}
	}
	return nil
}

// compareBlocks compares the blocks of a file with those of the ledger, where it has them, and with the root
// that the ledger names.
func (c *checker) compareBlocks(ctx context.Context, f *File, facts *segment.Facts) error {
	stored, err := ledger.Read(ctx, c.store, func(tx *ledger.Tx) ([]proof.Hash, error) {
		return tree.StoredBlocks(ctx, tx, f.Lo/proof.BlockSize, f.Hi/proof.BlockSize)
	})
	if err != nil {
		return err
	}
	if len(stored) > 0 { // an imported ledger has none
		if err := facts.CheckBlocks(stored); err != nil {
			return err
		}
	}
	if !c.whole {
		return nil
	}
	c.blocks = append(c.blocks, facts.Blocks...)
	root, err := proof.NewTree(c.blocks).Root(f.Hi)
	if err != nil {
		return err
	}
	if root.String() != f.Root {
		return fmt.Errorf("%w: the root of the tree at its end is %s, and the ledger names %s", segment.ErrDamaged,
			root, f.Root)
	}
	return nil
}

// chains are the last transitions of jobs.
type chains map[event.JobID]link

// link is a transition of a job: its seq, and the state that it led to.
type link struct {
	seq int64
	to  event.State
}

// add adds the next event.
func (c chains) add(e *event.Event) error {
	if !e.Kind().HasSeq() {
		return nil
	}
	last := c[e.Job]
	if e.Seq != last.seq+1 || e.From != last.to {
		return fmt.Errorf("%w: event %d has the seq %d from %q in the job %s, after the seq %d to %q",
			segment.ErrDamaged, e.Pos, e.Seq, e.From, e.Job, last.seq, last.to)
	}
	c[e.Job] = link{e.Seq, e.To}
	return nil
}

// continues compares the carried-in chains with those of the file before.
func (c chains) continues(before chains) error {
	for job, was := range before {
		is, ok := c[job]
		if ok && is != was || !ok && !was.to.Final() {
			return fmt.Errorf("%w: the job %s was %s at seq %d when the segment before ended, and is carried in as "+
				"%q at seq %d", segment.ErrDamaged, job, was.to, was.seq, is.to, is.seq)
		}
	}
	return nil
}
