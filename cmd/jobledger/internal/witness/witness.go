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

// Witness is what this host remembers of ledgers.
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
	Sealed   bool             // false: sealing is off, and there is no Origin, File and Now
	Origin   string           // the ledger's name
	File     string           // of the witness; it may not exist
	Before   *prove.Compared  // the ledger, in comparison with what was seen before; nil: nothing was
	Now      proof.Checkpoint // the ledger as it is
	Restored *prove.Restored  // the restore that explains why the ledger is another; nil: none, or no need
	Was      string           // the name at this address before, of another ledger; "": this one continues it
	History  []Replacement    // of what this host saw at this address, the oldest first

	file    []byte           // the content of File
	history []byte           // the lines of History
	known   proof.Checkpoint // of the events up to the last restored one; zero: there is none
}

// Alarm reports whether the ledger is not a continuation of what this host saw, for no known reason.
func (s Seen) Alarm() bool { return s.Before != nil && !s.Before.Same() && s.Restored == nil }

// Difference describes, in one sentence without its full stop, why the ledger is not a continuation of
// Before, which is not nil.
func (s Seen) Difference() string {
	switch {
	case s.Was == "":
		return s.Before.String()
	case s.Sealed:
		return fmt.Sprintf("the ledger here is %s, but when this host saw it last it was %s", s.Origin, s.Was)
	}
	return fmt.Sprintf("the ledger here is not sealed, but when this host saw it last it was, as %s", s.Was)
}

// Advance compares the ledger with what this host saw last, and unless that is an alarm, keeps what it is now
// for the next time; what a restore replaced becomes a part of the history. While sealing is off, it keeps no
// checkpoint. Errors: *FileError; those of the ledger.
func (w *Witness) Advance(ctx context.Context, store *ledger.Store) (Seen, error) {
	return w.advance(ctx, store, Replacement{At: time.Now()})
}

// Accept keeps what the ledger is now, even if that is an alarm. What was seen before becomes a part of
// the history, with who accepted the ledger and why. It returns what was found before that. Errors: those of
// Advance.
func (w *Witness) Accept(ctx context.Context, store *ledger.Store, actor, reason string, at time.Time) (Seen,
	error) {
	return w.advance(ctx, store, Replacement{At: at, Accepted: true, Actor: actor, Reason: reason})
}

func (w *Witness) advance(ctx context.Context, store *ledger.Store, by Replacement) (s Seen, err error) {
	for range maxTries {
		if s, err = w.Look(ctx, store); err != nil || s.Alarm() && !by.Accepted {
			return s, err
		}
		if err = w.record(store.Path(), &s, by); err == nil {
			err = w.keep(s)
		}
		if err == nil {
			return s, w.keepName(store, s)
		} else if !errors.Is(err, errChanged) {
			return s, err
		}
	}
	if !by.Accepted {
		err = nil // others of this host keep what they see
	}
	return s, err
}

// keep keeps the checkpoint of the ledger as it is. Errors: errChanged; *FileError.
func (w *Witness) keep(s Seen) error {
	if s.Before != nil && s.Before.Same() && s.Now.Size <= s.Before.Checkpoint.Size || s.Now.Size == 0 {
		return nil
	}
	text, err := s.Now.Sign()
	if err == nil && s.known.Size > 0 {
		var known []byte
		known, err = s.known.Sign()
		text = append(text, known...)
	}
	if err != nil {
		return err
	}
	return w.replace(s.File, s.file, text)
}

// maxTries bounds how often Advance looks again because another process has kept something meanwhile.
const maxTries = 10

// Look compares the ledger with what this host saw last. Errors: *FileError; those of the ledger.
func (w *Witness) Look(ctx context.Context, store *ledger.Store) (s Seen, err error) {
	was := w.nameAt(store.Path())
	history, list, fileErr := w.readHistory(store.Path())
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		s = Seen{History: list, history: history}
		now, err := projection.SealingOf(ctx, tx)
		if err != nil {
			return err
		}
		if s.Sealed, s.Origin = now.On, now.Origin; was != "" && was != s.Origin {
			if err := w.compare(ctx, tx, &s, was); err != nil {
				return err
			}
			if !s.Before.Same() {
				s.Was = was
			}
		}
		if !s.Sealed && s.Was == "" { // it must not fail for files that it does not need
			return nil
		}
		if fileErr != nil || !s.Sealed {
			return fileErr
		}
		s.File = w.file(s.Origin)
		if err := w.compare(ctx, tx, &s, s.Origin); err != nil {
			return err
		}
		return s.now(ctx, tx)
	})
	return s, err
}

// compare sets what the ledger is in comparison with what this host saw of the one called name, unless it is
// known to be another already. If only the name was kept, the names are compared. A restore explains no other
// name: that its ledger is not sealed, or is another one, is for an operator to accept.
func (w *Witness) compare(ctx context.Context, tx *ledger.Tx, s *Seen, name string) error {
	before, err := w.read(w.file(name))
	if err != nil {
		return err
	}
	s.file = before.text
	if s.Was != "" || before.text == nil && name == s.Origin {
		return nil
	}
	before.last.Origin = name
	compared, err := prove.Compare(ctx, tx, before.last)
	if err == nil {
		s.Before = &compared
		s.Restored, err = unknown(ctx, tx, before.known, compared.Restored)
	}
	return err
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

// now sets the checkpoints of the ledger as it is. If many events are in no stored block, as just after
// sealing was switched on, Now covers only the blocks.
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
