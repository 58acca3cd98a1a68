package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/segment"
	"jobledger/projection"
)

// Lines yields the events that Store.Lines does for After and Until, also those that have left the ledger:
// events up to the horizon come from the segment files, which are compared with the ledger's blocks, and the
// others from the ledger. With bodies it yields the payloads and results that are still there. An error ends
// it: ErrMissing for a file that is not there, segment.ErrDamaged.
func Lines(ctx context.Context, store *ledger.Store, dir string, f ledger.Filter, bodies bool) iter.Seq2[
	event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		w := whole{ctx: ctx, store: store, dir: dir, bodies: bodies, after: f.After, until: f.Until}
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

// PosAt returns the last pos whose at is not after t, also where that event has left the ledger; 0 if there
// is none. Errors: those of Lines.
func PosAt(ctx context.Context, store *ledger.Store, dir string, t time.Time) (pos int64, err error) {
	var files []File
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		if pos, err = projection.PosAt(ctx, tx, t); errors.Is(err, projection.ErrArchived) {
			pos = 0
			files, err = ListIn(ctx, tx, dir)
		}
		return err
	})
	for i := 0; i < len(files) && err == nil; i++ {
		f := &files[i]
		if !f.LastAt.After(t) {
			pos = f.Hi
			continue
		}
		for line, err := range Lines(ctx, store, dir, ledger.Filter{After: f.Lo, Until: f.Hi}, false) {
			if err != nil || line.At.After(t) {
				return pos, err
			}
			pos = line.Pos
		}
	}
	return pos, err
}

// whole reads along all events that there ever were.
type whole struct {
	ctx          context.Context
	store        *ledger.Store
	dir          string
	bodies       bool
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
	for line, err := range w.store.Lines(w.ctx, ledger.Filter{After: w.after, Until: w.until}, w.bodies) {
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
		stored, err := w.stored(m.Events[0].Pos, last)
		if err != nil {
			return err
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
			if b, ok := stored[line.Pos]; ok && event.BodyKey(line.Kind()) != "" {
				if line.Salt, line.Body = b.Salt, b.Body; line.Body == nil {
					line.Body = []byte{}
				}
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

// stored returns the bodies of events in a range that are still there.
func (w *whole) stored(first, last int64) (map[int64]ledger.StoredBody, error) {
	found := make(map[int64]ledger.StoredBody)
	if !w.bodies {
		return found, nil
	}
	err := w.store.Read(w.ctx, func(tx *ledger.Tx) error {
		for b, err := range tx.BodiesAfter(w.ctx, first-1) {
			if err != nil {
				return err
			}
			if b.Pos > last {
				break
			}
			found[b.Pos] = b
		}
		return nil
	})
	return found, err
}

// Leaves returns what gives a Store the leaves of events that have left it: see ledger.Store.Archived.
func Leaves(store *ledger.Store, dir string) func(ctx context.Context, from, to int64,
	fn func([]byte) error) error {
	return func(ctx context.Context, from, to int64, fn func([]byte) error) error {
		var leaf []byte
		for line, err := range Lines(ctx, store, dir, ledger.Filter{After: from, Until: to}, false) {
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
