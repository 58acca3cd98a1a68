package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/keyframe"
)

// What a sweep does besides reclaiming: what one transaction would be too short for, and what no command that
// changes a job should wait for. Each function may be called at any time, by any process, and does nothing
// where nothing is due.

// resolve carries on with the jobs that have more waiting for them than one transaction resolves. It pauses
// between transactions.
func resolve(ctx context.Context, s *ledger.Store, actor string, pause time.Duration) error {
	for {
		left := false
		err := s.Peek(ctx, func(tx *ledger.Tx) error {
			found, err := deps.Pending(ctx, tx, 1)
			left = len(found) > 0
			return err
		})
		if err == nil && left {
			err = s.Write(ctx, func(tx *ledger.Tx) error {
				return journal.ResolveNext(ctx, tx, actor, journal.ResolvedBySweeper)
			})
		}
		if err != nil {
			return fmt.Errorf("sweep: dependencies: %w", err)
		}
		if !left {
			return nil
		}
		failpoint.Hit("resolved")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// addKeyframes adds the keyframes that are due. What is damaged ends the keyframes, which are a cache, and
// not the sweep; verify names it.
func addKeyframes(ctx context.Context, s *ledger.Store) error {
	if _, err := keyframe.Extend(ctx, s, keyframe.Every); err != nil && !errors.Is(err, ledger.ErrDamaged) {
		return fmt.Errorf("sweep: keyframes: %w", err)
	}
	return nil
}

// addBlocks adds blocks of the hash tree that are missing, if sealing is on: up to so many events, or all for
// a negative step. more says that others are missing. As with keyframes, what is damaged does not end the
// sweep.
func addBlocks(ctx context.Context, s *ledger.Store, step int64) (more bool, err error) {
	now, err := projection.ReadSealing(ctx, s)
	switch {
	case err != nil || !now.On:
	case step < 0:
		_, err = tree.Extend(ctx, s, 0, nil)
	default:
		more, err = tree.Step(ctx, s, step, nil)
	}
	if err != nil && !errors.Is(err, ledger.ErrDamaged) {
		return more, fmt.Errorf("sweep: blocks: %w", err)
	}
	return more, nil
}

// trimWAL empties a -wal file that a long read let grow, since an idle ledger has no writer that would.
func trimWAL(ctx context.Context, s *ledger.Store) error {
	if _, err := s.TrimWAL(ctx); err != nil {
		return fmt.Errorf("sweep: -wal file: %w", err)
	}
	return nil
}
