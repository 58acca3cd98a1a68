package commands

import (
	"cmp"
	"context"
	"fmt"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// ErrNotSealing means that the ledger's events are not sealed.
var ErrNotSealing = fmt.Errorf("%w: sealing is off", ErrConflict)

// StartSealing records that the ledger's events are sealed from now on: sweepers add the hashes of whole
// blocks. It adds seal 1, of the events up to this one. origin is the ledger's name in its checkpoints, "" is
// jobledger/ and a new id; key is the public key that checkpoints are signed with, "" is none. Errors:
// InvalidError; ErrConflict if sealing is on already; ledger.ErrDamaged if what is stored is not the hash of
// its events.
func (s *Service) StartSealing(ctx context.Context, actor, origin, key, reason string) (projection.Sealing,
	error) {
	if origin == "" {
		origin = "jobledger/" + s.newID()
	}
	body := &event.Sealing{Origin: origin, Key: key, Reason: reason, Sealed: true}
	if err := invalid(check.Sealing(body)); err != nil {
		return projection.Sealing{}, err
	}
	if _, err := tree.Extend(ctx, s.Store, 0, nil); err != nil { // before the transaction, which is short
		return projection.Sealing{}, err
	}
	return s.seal(ctx, actor, reason, func(now projection.Sealing) (*event.Sealing, error) {
		if now.On {
			return nil, fmt.Errorf("%w: sealing is on already, as %s", ErrConflict, now.Origin)
		}
		return body, nil
	})
}

// RotateSealingKey records that checkpoints are signed with another key from now on, whose public part is
// key. Errors: InvalidError; ErrNotSealing; ErrConflict if it is the key already.
func (s *Service) RotateSealingKey(ctx context.Context, actor, key, reason string) (projection.Sealing,
	error) {
	return s.seal(ctx, actor, reason, func(now projection.Sealing) (*event.Sealing, error) {
		switch {
		case !now.On:
			return nil, ErrNotSealing
		case now.Key == key:
			return nil, fmt.Errorf("%w: the key is %s already", ErrConflict, key)
		}
		return &event.Sealing{Origin: now.Origin, Key: key, Reason: reason}, nil
	})
}

// seal records what decide makes of the ledger's state.
func (s *Service) seal(ctx context.Context, actor, reason string,
	decide func(projection.Sealing) (*event.Sealing, error)) (after projection.Sealing, err error) {
	if err := cmp.Or(CheckActor(actor), CheckText("reason", reason, MaxReason)); err != nil {
		return after, err
	}
	err = s.write(ctx, func(tx *ledger.Tx) error {
		now, err := projection.SealingOf(ctx, tx)
		if err != nil {
			return err
		}
		body, err := decide(now)
		if err != nil {
			return err
		}
		if err := invalid(check.Sealing(body)); err != nil {
			return err
		}
		after, err = journal.Seal(ctx, tx, actor, now, body)
		return err
	})
	if err != nil {
		return projection.Sealing{}, err
	}
	return after, nil
}

// Seal adds the blocks that are missing and a seal of all events, and returns that. If the last seal is of
// these events already, it returns the last one. Errors: ErrNotSealing; ledger.ErrDamaged if what is stored
// is not the hash of its events.
func (s *Service) Seal(ctx context.Context) (seal tree.Seal, err error) {
	now, err := projection.ReadSealing(ctx, s.Store)
	switch {
	case err != nil:
		return seal, err
	case !now.On:
		return seal, ErrNotSealing
	}
	return tree.SealAll(ctx, s.Store)
}
