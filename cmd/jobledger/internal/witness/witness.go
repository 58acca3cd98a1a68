package witness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// Witness is what this host has seen of ledgers.
type Witness struct{ folder string } // "": none

// In returns the witness that keeps its files in the folder "witness" of the state folder. "" is not a
// folder: then every look at a ledger that is sealed is a *FileError.
func In(state string) *Witness {
	if state == "" {
		return new(Witness)
	}
	return &Witness{filepath.Join(state, "witness")}
}

// Seen is what a look at a ledger has found.
type Seen struct {
	Sealed   bool             // false: sealing is off, and there is nothing else but Was
	Origin   string           // the ledger's name
	File     string           // of the witness; it may not exist
	Before   *prove.Compared  // the ledger, in comparison with what was seen before; nil: nothing was
	Now      proof.Checkpoint // the ledger as it is
	Restored *prove.Restored  // the restore that explains why the ledger is another; nil: none, or no need
	Was      string           // the name that the ledger at this address had before; "": the same, or unknown

	file  []byte           // the content of File
	known proof.Checkpoint // of the events up to the last restored one; zero: there is none
}

// Alarm reports whether the ledger is not a continuation of what this host saw, for no known reason.
func (s Seen) Alarm() bool { return s.Before != nil && !s.Before.Same() && s.Restored == nil }

// Renamed describes, in one sentence without its full stop, that another ledger is at this address, by its
// name or because it has none; "" if that is not so.
func (s Seen) Renamed() string {
	switch {
	case s.Was == "":
		return ""
	case s.Sealed:
		return fmt.Sprintf("the ledger here is %s, but when this host saw it last it was %s", s.Origin, s.Was)
	}
	return fmt.Sprintf("the ledger here is not sealed, but when this host saw it last it was, as %s", s.Was)
}

// Advance compares the ledger with what this host saw last, and unless that is an alarm, keeps what it is now
// for the next time. While sealing is off, it keeps nothing. Errors: *FileError; those of the ledger.
func (w *Witness) Advance(ctx context.Context, store *ledger.Store) (s Seen, err error) {
	if s, err = w.advance(ctx, store); err != nil || s.Alarm() {
		return s, err
	}
	return s, w.keepName(store, s)
}

func (w *Witness) advance(ctx context.Context, store *ledger.Store) (s Seen, err error) {
	for range maxTries {
		if s, err = w.Look(ctx, store); err != nil || !s.Sealed || s.Alarm() {
			return s, err
		}
		if s.Before != nil && s.Before.Same() && s.Now.Size <= s.Before.Checkpoint.Size || s.Now.Size == 0 {
			return s, nil
		}
		text, err := s.Now.Sign()
		if err == nil && s.known.Size > 0 {
			var known []byte
			known, err = s.known.Sign()
			text = append(text, known...)
		}
		if err != nil {
			return s, err
		}
		if err = w.replace(s.File, s.file, text); !errors.Is(err, errChanged) {
			return s, err
		}
	}
	return s, nil // others of this host keep what they see
}

// maxTries bounds how often Advance looks again because another process has kept something meanwhile.
const maxTries = 10

// Look compares the ledger with what this host saw last. Errors: *FileError; those of the ledger.
func (w *Witness) Look(ctx context.Context, store *ledger.Store) (s Seen, err error) {
	was := w.nameAt(store.Path())
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		s = Seen{Was: was}
		now, err := projection.SealingOf(ctx, tx)
		if now.On && now.Origin == was {
			s.Was = ""
		}
		if err != nil || !now.On {
			return err
		}
		s.Sealed, s.Origin, s.File = true, now.Origin, w.file(now.Origin)
		before, err := w.read(s.File)
		if err != nil {
			return err
		}
		if before.text != nil {
			s.file = before.text
			compared, err := prove.Compare(ctx, tx, before.last)
			if err != nil {
				return err
			}
			s.Before = &compared
			if s.Restored, err = unknown(ctx, tx, before.known, compared.Restored); err != nil {
				return err
			}
		}
		return s.now(ctx, tx)
	})
	return s, err
}

// unknown returns r, the restore that explains a difference, unless this host knew it before: then it
// explains nothing that came later. known is of the events up to the last one that was known.
func unknown(ctx context.Context, tx *ledger.Tx, known proof.Checkpoint, r *prove.Restored) (
	*prove.Restored, error) {
	if r == nil || known.Size < r.Pos {
		return r, nil
	}
	compared, err := prove.Compare(ctx, tx, known)
	if err != nil || compared.Same() {
		return nil, err
	}
	return r, nil
}

// maxLate is how many events behind the last stored block are hashed for a look: 65,536 take 0.3 s.
const maxLate = 1 << 16

// now sets the checkpoints of the ledger as it is. Where many events are in no stored block, as just after
// sealing was switched on, Now is that of the blocks.
func (s *Seen) now(ctx context.Context, tx *ledger.Tx) error {
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return err
	}
	s.Now = proof.Checkpoint{Origin: s.Origin, Size: t.Size()}
	if s.Now.Size-t.Sealed() > maxLate {
		s.Now.Size = t.Sealed()
	}
	if s.Now.Root, err = t.Root(ctx, s.Now.Size); err != nil {
		return err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindRestored},
		Until: s.Now.Size}) {
		if err != nil {
			return err
		}
		s.known = proof.Checkpoint{Origin: s.Origin, Size: e.Pos}
	}
	if s.known.Size > 0 {
		s.known.Root, err = t.Root(ctx, s.known.Size)
	}
	return err
}

// Forget removes what this host saw of the ledger called origin, so that the next look takes the ledger as it
// is. It keeps the checkpoint in a second file, with who did it and why. ok is false if there is nothing.
func (w *Witness) Forget(origin, actor, reason string, at time.Time) (c proof.Checkpoint, ok bool,
	err error) {
	file := w.file(origin)
	k, err := w.read(file)
	if c = k.last; err != nil || k.text == nil {
		return c, false, err
	}
	line := fmt.Sprintf("%s %q forgot size %d root %s of %s: %q\n", at.UTC().Format(time.RFC3339), actor, c.Size,
		c.Root, c.Origin, reason)
	return c, true, w.remove(file, line)
}
