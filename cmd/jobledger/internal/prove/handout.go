package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// ErrNothingNew means that the ledger has no event since the last checkpoint that these places got.
var ErrNothingNew = errors.New("nothing is new")

// ErrForked means that the ledger contradicts one of its checkpoints, so that a new checkpoint would prove an
// altered history.
var ErrForked = errors.New("the ledger differs from a checkpoint of it")

// ErrOtherKey means that a checkpoint was to be signed with keys of which the ledger names none.
var ErrOtherKey = errors.New("the ledger names another key")

// Head is the checkpoint of all events of a ledger, before it is signed.
type Head struct {
	proof.Checkpoint
	Keys []string // the public keys that the ledger has named, the one in force last; none: it names none
}

// NextHead adds the blocks that are missing and returns the checkpoint of all events. Errors:
// commands.ErrNotSealing; ErrForked if the last one that was handed out does not hold; ledger.ErrDamaged if
// what is stored covers events that are missing.
func NextHead(ctx context.Context, store *ledger.Store) (h Head, err error) {
	if s, err := projection.ReadSealing(ctx, store); err != nil || !s.On {
		return h, cmp.Or(err, commands.ErrNotSealing)
	}
	if _, err := tree.Extend(ctx, store, 0, nil); err != nil {
		return h, err
	}
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		last, ok, err := tree.LastHandedOut(ctx, tx)
		if err != nil {
			return err
		}
		if h, err = head(ctx, tx); err != nil {
			return err
		}
		if seal, _, err := tree.LastSeal(ctx, tx); err != nil || seal.Size > h.Size {
			return cmp.Or(err, fmt.Errorf("%w: seal %d is of %d events, and there are %d", ledger.ErrDamaged, seal.N,
				seal.Size, h.Size))
		}
		if !ok {
			return nil
		}
		c, err := proof.ParseCheckpoint([]byte(last.Note))
		if err != nil {
			return fmt.Errorf("%w: seal %d: %w", ledger.ErrDamaged, last.N, err)
		}
		compared, err := Compare(ctx, tx, c)
		if err == nil && !compared.Same() {
			err = fmt.Errorf("%w, which was handed out: of %d events with root %s", ErrForked, c.Size, c.Root)
		}
		return err
	})
	return h, err
}

// Due returns those of places to which h, signed with exactly the private keys, was not handed out. Error:
// ErrNothingNew if there is none; without places, if it was handed out to any.
func (h Head) Due(ctx context.Context, store *ledger.Store, private, places []string) (due []string,
	err error) {
	var last tree.Seal
	got := make(map[string]bool)
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		for s, err := range tree.HandedOut(ctx, tx, h.Size) {
			if err != nil {
				return err
			}
			same, err := signedWith([]byte(s.Note), private)
			if err != nil {
				return err
			}
			if same {
				last, got[s.Place] = s, true
			}
		}
		return nil
	})
	for _, place := range places {
		if !got[place] && !slices.Contains(due, place) {
			due = append(due, place)
		}
	}
	if err == nil && len(due) == 0 && len(got) > 0 {
		err = fmt.Errorf("%w since the checkpoint of %d events, handed out on %s", ErrNothingNew, last.Size,
			last.At.UTC().Format(time.RFC3339))
	}
	return due, err
}

// signedWith reports whether the text of a checkpoint is signed with each of the private keys and no other.
func signedWith(text []byte, private []string) (bool, error) {
	same := len(proof.Signers(text)) == len(private)
	for _, key := range private {
		public, err := proof.PublicKey(key)
		if err != nil {
			return false, err
		}
		same = same && proof.SignedBy(text, public)
	}
	return same, nil
}

// SignWith returns the text of h signed with private keys. If the ledger has named public keys, one of
// them must be among those of the private ones: verify rejects another signature. Without private keys the
// text is not signed.
func (h Head) SignWith(private []string) ([]byte, error) {
	known := len(h.Keys) == 0 || len(private) == 0
	for _, key := range private {
		public, err := proof.PublicKey(key)
		if err != nil {
			return nil, err
		}
		known = known || slices.Contains(h.Keys, public)
	}
	if !known {
		return nil, fmt.Errorf("%w; it names %s", ErrOtherKey, h.Keys[len(h.Keys)-1])
	}
	return h.Sign(private...)
}

// head is the checkpoint of all events that tx sees.
func head(ctx context.Context, tx *ledger.Tx) (h Head, err error) {
	s, err := projection.SealingOf(ctx, tx)
	if err != nil {
		return h, err
	}
	if !s.On {
		return h, commands.ErrNotSealing
	}
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return h, err
	}
	h = Head{Checkpoint: proof.Checkpoint{Origin: s.Origin, Size: t.Size()}}
	if _, h.Keys, err = named(ctx, tx); err == nil {
		h.Root, err = t.Root(ctx, h.Size)
	}
	return h, err
}

// RecordHandedOut records that text, the checkpoint h, was handed out to places.
func RecordHandedOut(ctx context.Context, store *ledger.Store, h Head, text []byte, places ...string) error {
	failpoint.Hit("handed-out")
	return store.Write(ctx, func(tx *ledger.Tx) error {
		var list []tree.Seal
		for _, place := range places {
			list = append(list, tree.Seal{Size: h.Size, Root: h.Root, Note: string(text), Place: place})
		}
		_, err := tree.AppendSeals(ctx, tx, list...)
		return err
	})
}
