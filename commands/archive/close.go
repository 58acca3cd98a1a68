package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/proof"
	"jobledger/ledger/segment"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// SegmentEvents is how many events a segment file has at most: about 50 MB.
const SegmentEvents = 1 << 20

// ErrNothing means that there is no whole block of events that is old enough and not archived.
var ErrNothing = errors.New("archive: no events are old enough")

// Options say what Close does.
type Options struct {
	Dir       string        // the folder of the segment files; it is made if it is not there
	Actor     string        // recorded in the event
	Reason    string        // likewise
	OlderThan time.Duration // events that are at least so old
	Most      int64         // events of a file, a multiple of proof.BlockSize; 0: SegmentEvents
}

// Due returns the range of the events that are not archived and at least as old as olderThan, up to the last
// whole block. Errors: ErrNothing.
func Due(ctx context.Context, store *ledger.Store, olderThan time.Duration) (due segment.Range, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		last, err := projection.LastSegment(ctx, tx)
		if err != nil {
			return err
		}
		old, err := tx.PosAt(ctx, tx.Now().Add(-olderThan))
		due = segment.Range{Lo: last.Hi, Hi: old / proof.BlockSize * proof.BlockSize}
		return err
	})
	if err == nil && due.Hi <= due.Lo {
		err = ErrNothing
	}
	return due, err
}

// Close archives the next segment of what is due, up to hi, which Due returned. Several may do it at once:
// the event of one of them is recorded, and the others get ErrConflict. Errors: ErrNothing if everything up
// to hi is archived; ledger.ErrDamaged if events are not what their blocks say; segment.ErrOther if there is
// another file with the name of the segment.
func Close(ctx context.Context, s *commands.Service, hi int64, o Options) (done projection.Segment,
	err error) {
	r, err := next(ctx, s.Store, hi, o.Most)
	if err != nil {
		return done, err
	}
	if _, err := tree.Extend(ctx, s.Store, r.Hi, nil); err != nil {
		return done, overtaken(ctx, s.Store, r, err)
	}
	failpoint.Hit("archive-sealed")
	var root proof.Hash
	f, parts, err := segment.Create(o.Dir, r, contents(ctx, s.Store, r), func(f *segment.Facts) error {
		root, err = confirm(ctx, s.Store, f)
		return err
	})
	if err != nil {
		return done, overtaken(ctx, s.Store, r, err)
	}
	done, err = Record(ctx, s, o.Actor, event.Archived{Lo: r.Lo, Hi: r.Hi, Root: root.String(),
		SHA256: fmt.Sprintf("%x", f.SHA256), Bytes: f.Bytes, Jobs: f.Jobs, CarriedIn: f.Carried,
		FirstAt: f.FirstAt, LastAt: f.LastAt, Reason: o.Reason, Parts: parts.Digests()})
	if err != nil {
		return done, err
	}
	failpoint.Hit("archive-recorded")
	return done, segment.RemovePartial(o.Dir, r.Hi)
}

// next returns the range of the next file.
func next(ctx context.Context, store *ledger.Store, hi, most int64) (r segment.Range, err error) {
	most = cmp.Or(most, SegmentEvents)
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		last, err := projection.LastSegment(ctx, tx)
		r = segment.Range{Lo: last.Hi, Hi: min(hi, last.Hi+most)}
		return err
	})
	if err == nil && r.Hi <= r.Lo {
		return r, ErrNothing
	}
	return r, err
}

// overtaken returns err, or ErrConflict if another process has archived events of the range meanwhile, even
// fewer: it then removed what was not named yet, and events may have left the ledger.
func overtaken(ctx context.Context, store *ledger.Store, r segment.Range, err error) error {
	now, readErr := next(ctx, store, r.Hi, r.Events())
	if errors.Is(readErr, ErrNothing) || readErr == nil && now.Lo != r.Lo {
		return fmt.Errorf("%w: another process has archived the events from %d on meanwhile (%w)",
			commands.ErrConflict, r.Lo+1, err)
	}
	return err
}

// confirm compares what was read back with the blocks of the ledger, and returns the root at its end.
func confirm(ctx context.Context, store *ledger.Store, f *segment.Facts) (root proof.Hash, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		blocks, err := tree.StoredBlocks(ctx, tx, f.Lo/proof.BlockSize, f.Hi/proof.BlockSize)
		if err != nil {
			return err
		}
		if err := f.CheckBlocks(blocks); err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
		}
		events, err := tree.New(ctx, tx, nil)
		if err != nil {
			return err
		}
		root, err = events.Root(ctx, f.Hi)
		return err
	})
	return root, err
}
