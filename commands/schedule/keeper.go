package schedule

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"jobledger/commands"
	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/schedules"
)

// ErrNone means that there is no schedule of that name.
var ErrNone = errors.New("no such schedule")

// Spec says what a schedule is: its Name, when it ticks (Cron with Zone, or Every), and the jobs that it
// makes (Queue, Payload, MaxAttempts, …). Complete has the defaults of the other fields. Next and Reason are
// set by what records it.
type Spec = event.ScheduleSet

// Set makes the schedules of these names be as specs say, in one transaction, and leaves all others as they
// are. A program calls it at each start: where nothing is different, no event is recorded and no tick moves.
// Any worker of the ledger enqueues the jobs when they are due. Errors: commands.InvalidError, with which
// nothing was changed.
func Set(ctx context.Context, service *commands.Service, actor string, specs ...Spec) ([]Change, error) {
	return (&Keeper{Service: service, Actor: actor}).Apply(ctx, specs, false, "")
}

// Keeper sets, pauses and removes schedules, with a reason. It is safe for concurrent use.
type Keeper struct {
	Service *commands.Service
	Actor   string
}

// Set makes the schedule of spec's name be as spec says, with Complete's defaults. Its next tick is the first
// one after now: setting a schedule never enqueues a job. If the schedule is already like that, changed is
// false and no event is recorded. A schedule with Every and without From keeps its beginning if Every is
// unchanged. A paused schedule stays paused. Errors: commands.InvalidError.
func (k *Keeper) Set(ctx context.Context, spec event.ScheduleSet, reason string) (s schedules.Schedule,
	changed bool, err error) {
	done, err := k.Apply(ctx, []event.ScheduleSet{spec}, false, reason)
	if err != nil {
		return s, false, err
	}
	return done[0].Schedule, done[0].Done != Unchanged, nil
}

// What Apply did with a schedule.
const (
	Added     = "added"
	Changed   = "changed"
	Removed   = "removed"
	Unchanged = "unchanged"
)

// Change is what Apply did with one schedule.
type Change struct {
	schedules.Schedule        // as it is now, or was before it was removed
	Done               string // Added, Changed, Removed or Unchanged
}

// Apply is Set of all specs, in one transaction, and with prune removes all other schedules. The answer has
// the specs in their order, then what was removed by name.
func (k *Keeper) Apply(ctx context.Context, specs []event.ScheduleSet, prune bool, reason string) (
	changes []Change, err error) {
	complete, named, err := k.complete(specs, reason)
	if err != nil {
		return nil, err
	}
	err = k.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		if changes = nil; k.Service.If != nil {
			if err := k.Service.If(ctx, tx); err != nil {
				return err
			}
		}
		for _, spec := range complete {
			c, err := k.set(ctx, tx, spec, reason)
			if err != nil {
				return err
			}
			changes = append(changes, c)
		}
		if !prune {
			return nil
		}
		all, err := schedules.List(ctx, tx)
		for _, s := range all {
			if err == nil && !named[s.Spec.Name] {
				err = record(ctx, tx, k.Actor, s, &event.ScheduleRemoved{Name: s.Spec.Name,
					Reason: reason})
				changes = append(changes, Change{s, Removed})
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return changes, nil
}

func (k *Keeper) check(reason string) error {
	if err := commands.CheckActor(k.Actor); err != nil {
		return err
	}
	return commands.CheckCommand(commands.Cancel{Reason: reason}) // the rules of any reason
}

// set records what makes the schedule be as spec says.
func (k *Keeper) set(ctx context.Context, tx *ledger.Tx, spec event.ScheduleSet, reason string) (c Change,
	err error) {
	before, err := schedules.Get(ctx, tx, spec.Name)
	if err != nil {
		return c, err
	}
	now := tx.Now()
	if spec.Every > 0 && spec.From.IsZero() {
		if spec.From = now.UTC().Truncate(time.Second); before.Spec.Every == spec.Every {
			spec.From = before.Spec.From
		}
	}
	if same(before.Spec, spec) {
		return Change{before, Unchanged}, nil
	}
	queues, err := defaults.Current(ctx, tx)
	if err != nil {
		return c, err
	}
	if p := check.FormOf(spec.Queue, spec.Form, queues[spec.Queue].Commands); p != nil {
		return c, (*commands.InvalidError)(p)
	}
	times, err := Times(spec)
	if err != nil {
		return c, err
	}
	body := spec
	if body.Reason = reason; !before.Paused {
		body.Next = times.Next(now)
	}
	if err := record(ctx, tx, k.Actor, before, &body); err != nil {
		return c, err
	}
	if c.Done = Changed; !before.Exists() {
		c.Done = Added
	}
	c.Schedule, err = schedules.Get(ctx, tx, spec.Name)
	return c, err
}

// record records a fact about a schedule, other than a job of it, in the transaction in which before was
// read.
func record(ctx context.Context, tx *ledger.Tx, actor string, before schedules.Schedule,
	body event.Body) error {
	_, err := journal.Record(ctx, tx, journal.Fact{Actor: actor, Schedule: &before, Body: body})
	return err
}

// same reports whether two specs are the same; an empty list is not a list.
func same(a, b event.ScheduleSet) bool {
	for _, spec := range []*event.ScheduleSet{&a, &b} {
		if len(spec.Requires) == 0 {
			spec.Requires = nil
		}
		if len(spec.Tags) == 0 {
			spec.Tags = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// Suspend pauses a schedule: it ticks no more until it is resumed. If it is paused already, changed is false
// and no event is recorded. Errors: ErrNone; commands.InvalidError.
func (k *Keeper) Suspend(ctx context.Context, name, reason string) (s schedules.Schedule, changed bool,
	err error) {
	return k.change(ctx, name, reason, func(s schedules.Schedule, _ time.Time) (event.Body, error) {
		if s.Paused {
			return nil, nil
		}
		return &event.SchedulePaused{Name: name, Reason: reason}, nil
	})
}

// Resume lets a paused schedule tick again, from now on: what would have ticked meanwhile was not missed. If
// it is not paused, changed is false and no event is recorded. Errors: ErrNone; commands.InvalidError.
func (k *Keeper) Resume(ctx context.Context, name, reason string) (s schedules.Schedule, changed bool,
	err error) {
	return k.change(ctx, name, reason, func(s schedules.Schedule, now time.Time) (event.Body, error) {
		if !s.Paused {
			return nil, nil
		}
		times, err := Times(s.Spec)
		return &event.ScheduleResumed{Name: name, Next: times.Next(now), Reason: reason}, err
	})
}

// Remove removes a schedule. Its jobs and its history stay. Errors: ErrNone; commands.InvalidError.
func (k *Keeper) Remove(ctx context.Context, name, reason string) error {
	_, _, err := k.change(ctx, name, reason, func(schedules.Schedule, time.Time) (event.Body, error) {
		return &event.ScheduleRemoved{Name: name, Reason: reason}, nil
	})
	return err
}

// change records the fact that decide makes of the schedule; nil if there is none to record.
func (k *Keeper) change(ctx context.Context, name, reason string,
	decide func(schedules.Schedule, time.Time) (event.Body, error)) (s schedules.Schedule, changed bool,
	err error) {
	if err := CheckName(name); err != nil {
		return s, false, err
	}
	if err := k.check(reason); err != nil {
		return s, false, err
	}
	err = k.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		changed = false
		if s, err = existing(ctx, tx, name); err != nil {
			return err
		}
		body, err := decide(s, tx.Now())
		if err != nil || body == nil {
			return err
		}
		changed = true
		if err := record(ctx, tx, k.Actor, s, body); err != nil {
			return err
		}
		s, err = schedules.Get(ctx, tx, name)
		return err
	})
	if err != nil {
		return schedules.Schedule{}, false, err
	}
	return s, changed, nil
}

func existing(ctx context.Context, tx *ledger.Tx, name string) (schedules.Schedule, error) {
	s, err := schedules.Get(ctx, tx, name)
	if err == nil && !s.Exists() {
		err = fmt.Errorf("%w: %s", ErrNone, name)
	}
	return s, err
}

// Run enqueues a job of the schedule now, besides its ticks, paused or not, with this id, a ULID; "": a fresh
// one. Errors: ErrNone; commands.InvalidError.
func (k *Keeper) Run(ctx context.Context, name, id string) (j projection.Job, err error) {
	if err := CheckName(name); err != nil {
		return j, err
	}
	if err := commands.CheckActor(k.Actor); err != nil {
		return j, err
	}
	err = k.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		s, err := existing(ctx, tx, name)
		if err != nil {
			return err
		}
		e := job(s.Spec, "")
		e.ID = id
		j, err = k.Service.EnqueueTick(ctx, tx, k.Actor, commands.Tick{Schedule: s, Job: e})
		return err
	})
	return j, err
}
