package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// Adoption is what another program runs at set times, and what is to be here of it: one side runs it at a
// time.
type Adoption struct {
	Specs []Spec // those that are not there yet are paused from the beginning
	// the names of those of Specs that the other side still runs: they are paused, if they are not
	Elsewhere []string
	Remove    []string // the names of what the other side has no more
}

// Adopt makes the schedules be as a says, in one transaction, so none of them ticks before it is resumed.
// What is so already is left alone: the same again records no event. The answer has the specs in their order,
// then what was removed. Errors: commands.InvalidError, ErrNone.
func (k *Keeper) Adopt(ctx context.Context, a Adoption, reason string) (changes []Change, err error) {
	complete, _, err := k.complete(a.Specs, reason)
	if err != nil {
		return nil, err
	}
	err = k.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		changes = nil
		for _, spec := range complete {
			c, err := k.set(ctx, tx, spec, reason)
			if err != nil {
				return err
			}
			if !c.Paused && (c.Done == Added || slices.Contains(a.Elsewhere, spec.Name)) {
				body := &event.SchedulePaused{Name: spec.Name, Reason: reason}
				if err := record(ctx, tx, k.Actor, c.Schedule, body); err != nil {
					return err
				}
				if c.Schedule, err = schedules.Get(ctx, tx, spec.Name); err != nil {
					return err
				}
				if c.Done == Unchanged {
					c.Done = Changed
				}
			}
			changes = append(changes, c)
		}
		for _, name := range a.Remove {
			s, err := existing(ctx, tx, name)
			if err != nil {
				return err
			}
			body := &event.ScheduleRemoved{Name: name, Reason: reason}
			if err := record(ctx, tx, k.Actor, s, body); err != nil {
				return err
			}
			changes = append(changes, Change{s, Removed})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

// ResumeSince resumes those of the schedules of these names that are paused, in one transaction. The next
// tick of each is the first one after the moment that goes with it, from which on the other side does not run
// it: one that is due since then is not lost. Names that there are not, and what ticks already, are left
// alone. Errors: commands.InvalidError.
func (k *Keeper) ResumeSince(ctx context.Context, since map[string]time.Time, reason string) (
	resumed []schedules.Schedule, err error) {
	if err := k.check(reason); err != nil {
		return nil, err
	}
	err = k.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		resumed = nil
		all, err := schedules.List(ctx, tx)
		if err != nil {
			return err
		}
		for _, s := range all {
			at, asked := since[s.Spec.Name]
			if !asked || !s.Paused {
				continue
			}
			times, err := Times(s.Spec)
			if err != nil {
				return err
			}
			body := &event.ScheduleResumed{Name: s.Spec.Name, Next: times.Next(at), Reason: reason}
			if err := record(ctx, tx, k.Actor, s, body); err != nil {
				return err
			}
			if s, err = schedules.Get(ctx, tx, s.Spec.Name); err != nil {
				return err
			}
			resumed = append(resumed, s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resumed, nil
}

// complete returns specs with the defaults of what they leave out, and their names, if they and the reason
// may be recorded.
func (k *Keeper) complete(specs []Spec, reason string) (complete []Spec, named map[string]bool, err error) {
	complete, named = make([]Spec, len(specs)), make(map[string]bool)
	for i, spec := range specs {
		complete[i] = Complete(spec)
		if err := Check(complete[i]); err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("schedule %d of %d: %w", i+1, len(specs), err)
			}
			return nil, nil, err
		}
		if named[spec.Name] {
			return nil, nil, &commands.InvalidError{Field: "name", Got: spec.Name, Allowed: "each name once"}
		}
		named[spec.Name] = true
	}
	return complete, named, k.check(reason)
}
