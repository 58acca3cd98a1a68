package archive

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/segment"
	"jobledger/projection"
)

// Lines yields the events that Store.Lines does for After and Until, without payloads and results, also
// those that have left the ledger: events up to the horizon come from the segment files, which are compared
// with the ledger's blocks, and the others from the ledger. An error ends it: ErrMissing for a file that is
// not there, segment.ErrDamaged.
func Lines(ctx context.Context, store *ledger.Store, dir string, f ledger.Filter) iter.Seq2[event.Line,
	error] {
	return func(yield func(event.Line, error) bool) {
		w := whole{ctx: ctx, store: store, dir: dir, after: f.After, until: f.Until}
		err := store.Read(ctx, func(tx *ledger.Tx) error {
			tail, err := tx.Tail(ctx)
			if w.until == 0 || w.until > tail {
				w.until = tail
			}
			return err
		})
		for err == nil && w.after < w.until && !w.stopped {
			err = w.next(yield)
		}
		if err != nil {
			yield(event.Line{}, err)
		}
	}
}

// whole reads along all events that there ever were.
type whole struct {
	ctx          context.Context
	store        *ledger.Store
	dir          string
	after, until int64
	stopped      bool // by the caller
}

// next yields the rest of a segment, or what is in the ledger. That may leave meanwhile, for another segment.
func (w *whole) next(yield func(event.Line, error) bool) error {
	var horizon int64
	var files []File
	err := w.store.Read(w.ctx, func(tx *ledger.Tx) (err error) {
		if horizon, err = projection.Horizon(w.ctx, tx); err == nil && w.after < horizon {
			files, err = ListIn(w.ctx, tx, w.dir)
		}
		return err
	})
	if err != nil {
		return err
	}
	if w.after >= horizon {
		return w.live(yield, horizon)
	}
	for i := range files {
		if f := &files[i]; w.after >= f.Lo && w.after < f.Hi {
			return w.archived(f, yield)
		}
	}
	return fmt.Errorf("%w: no segment has the event %d", ledger.ErrDamaged, w.after+1)
}

// live yields events of the ledger, until one is missing because it has left.
func (w *whole) live(yield func(event.Line, error) bool, horizon int64) error {
	for line, err := range w.store.Lines(w.ctx, ledger.Filter{After: w.after, Until: w.until}, false) {
		if err != nil {
			return err
		}
		if line.Pos != w.after+1 {
			return w.left(horizon)
		}
		if !yield(line, nil) {
			w.stopped = true
			return nil
		}
		w.after = line.Pos
	}
	if w.after < w.until {
		return w.left(horizon)
	}
	return nil
}

// left returns an error unless events have left the ledger since horizon was read.
func (w *whole) left(horizon int64) error {
	return w.store.Read(w.ctx, func(tx *ledger.Tx) error {
		now, err := projection.Horizon(w.ctx, tx)
		if err == nil && now <= horizon {
			err = fmt.Errorf("%w: event %d is missing", ledger.ErrDamaged, w.after+1)
		}
		return err
	})
}

// archived yields the events of a segment file after w.after.
func (w *whole) archived(f *File, yield func(event.Line, error) bool) error {
	x, err := f.places(w.ctx)
	if err != nil {
		return err
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	if place, _, ok := x.At(w.after + 1); ok {
		if _, err := file.Seek(place.Offset, io.SeekStart); err != nil {
			return err
		}
	}
	for m, err := range segment.Members(file) {
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		last := m.Events[len(m.Events)-1].Pos
		if m.Events[0].Pos <= f.Lo || last <= w.after {
			continue
		}
		if err := compareMember(w.ctx, w.store, f, m); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		for i := range m.Events {
			line := event.Line{Event: m.Events[i]}
			if line.Pos <= w.after {
				continue
			}
			if line.Pos != w.after+1 {
				return fmt.Errorf("%w: %s has the event %d after %d", segment.ErrDamaged, f.Path, line.Pos, w.after)
			}
			if line.Pos > w.until {
				return nil
			}
			if !yield(line, nil) {
				w.stopped = true
				return nil
			}
			w.after = line.Pos
		}
		if w.after >= w.until {
			return nil
		}
	}
	if w.after < f.Hi {
		return fmt.Errorf("%w: %s ends with the event %d", segment.ErrDamaged, f.Path, w.after)
	}
	return nil
}

// Leaves returns what gives a Store the leaves of events that have left it: see ledger.Store.Archived.
func Leaves(store *ledger.Store, dir string) func(ctx context.Context, from, to int64,
	fn func([]byte) error) error {
	return func(ctx context.Context, from, to int64, fn func([]byte) error) error {
		var leaf []byte
		for line, err := range Lines(ctx, store, dir, ledger.Filter{After: from, Until: to}) {
			if err != nil {
				return err
			}
			leaf = line.Event.AppendLeaf(leaf[:0])
			if err := fn(leaf); err != nil {
				return err
			}
		}
		return nil
	}
}
