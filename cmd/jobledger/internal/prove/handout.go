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

// ErrNothingNew means that the ledger has no event since the last checkpoint that was handed out.
var ErrNothingNew = errors.New("nothing is new")

// ErrForked means that the ledger is not what a checkpoint of it says, so that another one would prove a
// history which was altered.
var ErrForked = errors.New("the ledger differs from a checkpoint of it")

// ErrOtherKey means that a checkpoint was to be signed with keys of which the ledger names none.
var ErrOtherKey = errors.New("the ledger names another key")

// Head is the checkpoint of all events of a ledger, before it is signed.
type Head struct {
	proof.Checkpoint
	Keys []string // the public keys that the ledger has named, the one in force last; none: it names none
}

// NextHead adds the blocks that are missing and returns the checkpoint of all events. Errors:
// commands.ErrNotSealing; ErrNothingNew; ErrForked where the last one that was handed out does not hold;
// ledger.ErrDamaged where what is stored is of events that are not there.
func NextHead(ctx context.Context, store *ledger.Store) (h Head, err error) {
	if _, err := sealing(ctx, store); err != nil {
		return h, err
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
		switch {
		case err != nil:
			return err
		case !compared.Same():
			return fmt.Errorf("%w, which was handed out: of %d events with root %s", ErrForked, c.Size, c.Root)
		case c.Size == h.Size:
			return fmt.Errorf("%w since the checkpoint of %d events, handed out on %s", ErrNothingNew, c.Size,
				last.At.UTC().Format(time.RFC3339))
		}
		return nil
	})
	return h, err
}

// SignWith returns the text of h signed with private keys. Where the ledger has named public keys, one of
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

func sealing(ctx context.Context, store *ledger.Store) (s projection.Sealing, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		s, err = projection.SealingOf(ctx, tx)
		return err
	})
	if err == nil && !s.On {
		err = commands.ErrNotSealing
	}
	return s, err
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

// RecordHandedOut records that text, the checkpoint h, was handed out. A larger one that another process
// recorded meanwhile is as good.
func RecordHandedOut(ctx context.Context, store *ledger.Store, h Head, text []byte) error {
	failpoint.Hit("handed-out")
	err := store.Write(ctx, func(tx *ledger.Tx) error {
		return tree.AppendSeal(ctx, tx, tree.Seal{Size: h.Size, Root: h.Root, Note: string(text)})
	})
	if errors.Is(err, ledger.ErrConflict) {
		return nil
	}
	return err
}
