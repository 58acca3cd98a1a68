package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// SetPolicy records what workers archive automatically from now on; a zero OlderThan: nothing. changed is
// false if the policy is the same already. Errors: commands.InvalidError.
func SetPolicy(ctx context.Context, s *commands.Service, actor string, p event.ArchivePolicy) (changed bool,
	err error) {
	if err := commands.CheckActor(actor); err != nil {
		return false, err
	}
	if err := commands.CheckText("reason", p.Reason, commands.MaxReason); err != nil {
		return false, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		now, err := projection.ArchivePolicy(ctx, tx)
		changed = !samePolicy(now, p)
		if err != nil || !changed {
			return err
		}
		e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: &p}
		if err := e.Validate(); err != nil {
			return fmt.Errorf("%w: %w", commands.ErrInvalid, err)
		}
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: &p})
		return err
	})
	return changed, err
}

// Keeper carries out the archive policy of a ledger in small steps. Any number of processes may have one. It
// is for use by one goroutine; the zero value of a field is its default.
type Keeper struct {
	Service *commands.Service
	Dir     string // the folder of the segment files; "": the policy is left to others
	Actor   string
	Logs    string        // the folder with the output of the jobs' commands; "": the policy cannot remove it
	Every   time.Duration // how often it looks; default a minute
	Events  int64         // that a file has at most, and at least unless they are a day late; default 65,536
	Time    time.Duration // for how long a step removes jobs; default 5s

	looked  time.Time
	swept   time.Time // when the last removal ended
	policy  event.ArchivePolicy
	removal *Removal // under way
}

const (
	keeperEvery  = time.Minute
	keeperEvents = 1 << 16
	keeperTime   = 5 * time.Second
	keeperLate   = 24 * time.Hour // events that are so much older than they need be make a small file
	keeperAgain  = time.Hour      // between two looks at all jobs, while nothing is archived
)

// Step does what is due. If there is no policy, it costs one look in an index a minute. What another
// process does at the same time is not an error.
func (k *Keeper) Step(ctx context.Context) error {
	if k.Dir == "" {
		return nil
	}
	err := k.step(ctx)
	if errors.Is(err, commands.ErrConflict) || errors.Is(err, ErrNothing) {
		return nil
	}
	if err != nil {
		err = fmt.Errorf("archive: %w", err)
	}
	return err
}

func (k *Keeper) step(ctx context.Context) error {
	if every := orDefault(k.Every, keeperEvery); k.removal == nil && time.Since(k.looked) < every {
		return nil
	}
	k.looked = time.Now()
	now, err := ledger.Read(ctx, k.Service.Store, func(tx *ledger.Tx) (event.ArchivePolicy, error) {
		return projection.ArchivePolicy(ctx, tx)
	})
	if err != nil {
		return err
	}
	if !samePolicy(now, k.policy) {
		k.policy, k.removal, k.swept = now, nil, time.Time{}
	}
	if now.OlderThan == 0 {
		return nil
	}
	closed, err := k.close(ctx)
	if err != nil {
		return err
	}
	if k.removal == nil && (closed || time.Since(k.swept) >= keeperAgain) {
		k.removal = &Removal{Service: k.Service, Dir: k.Dir, Actor: k.Actor, OlderThan: now.OlderThan,
			KeepFailed: now.KeepFailed, KeepBodies: now.KeepBodies}
		if now.RemoveLogs {
			k.removal.Logs = k.Logs
		}
	}
	return k.remove(ctx)
}

// close archives the next events, if they are enough for a file or late.
func (k *Keeper) close(ctx context.Context) (closed bool, err error) {
	due, err := Due(ctx, k.Service.Store, k.policy.OlderThan)
	if errors.Is(err, ErrNothing) {
		return false, nil
	}
	most := orDefault(k.Events, keeperEvents)
	if err == nil && due.Events() < most {
		late, lateErr := Due(ctx, k.Service.Store, k.policy.OlderThan+keeperLate)
		if errors.Is(lateErr, ErrNothing) {
			return false, nil
		}
		due, err = late, lateErr
	}
	if err == nil {
		_, err = Close(ctx, k.Service, due.Hi, Options{Dir: k.Dir, Actor: k.Actor, Most: most})
	}
	return err == nil, err
}

// remove goes on with the removal.
func (k *Keeper) remove(ctx context.Context) error {
	end := time.Now().Add(orDefault(k.Time, keeperTime))
	for k.removal != nil && time.Now().Before(end) {
		_, more, err := k.removal.Step(ctx)
		if err != nil {
			k.removal = nil
			return err
		}
		if !more {
			k.removal, k.swept = nil, time.Now()
			return shrink(ctx, newPace(k.Service.Store), end)
		}
		if err := k.removal.pace.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

func samePolicy(a, b event.ArchivePolicy) bool {
	return a.OlderThan == b.OlderThan && a.KeepFailed == b.KeepFailed && a.RemoveLogs == b.RemoveLogs &&
		a.KeepBodies == b.KeepBodies
}

func orDefault[T int64 | time.Duration](given, otherwise T) T {
	if given == 0 {
		return otherwise
	}
	return given
}
