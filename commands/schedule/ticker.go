package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
	"jobledger/projection/ends"
	"jobledger/projection/schedules"
)

// Ticker enqueues the jobs of schedules that are due. It is for use by one goroutine; any number of them may
// work on a ledger.
type Ticker struct {
	Service *commands.Service
	Actor   string        // "sweeper:…"
	Pause   time.Duration // between transactions; default 10ms

	// Poll is how often Run looks for schedules that others set; default 5s. It looks when a tick is due in
	// any case.
	Poll time.Duration
}

// Ticked has the outcomes of the ticks that were due.
type Ticked struct {
	Jobs    []projection.Job
	Skipped int64 // ticks that made no job
}

// perTransaction is how many steps one transaction carries out.
const perTransaction = 100

// planned is a schedule as it was read, and what its due ticks will become.
type planned struct {
	schedules.Schedule
	steps []step
}

// Tick carries out what is due, a hundred ticks a transaction, until nothing is. Schedules that cannot be
// carried out, because the ledger is damaged there or this process does not know their time zone, are left
// alone and named in the error; the answer is valid for the others.
func (t *Ticker) Tick(ctx context.Context) (done Ticked, err error) {
	if err := commands.CheckActor(t.Actor); err != nil {
		return done, err
	}
	bad := make(map[string]error)
	for {
		batch, err := t.due(ctx, bad)
		if err != nil {
			return done, fmt.Errorf("schedules: %w", err)
		}
		if len(batch) == 0 {
			return done, joined(bad)
		}
		failpoint.Hit("planned")
		if err := t.carryOutOrIsolate(ctx, batch, &done, bad); err != nil {
			return done, fmt.Errorf("schedules: %w", err)
		}
		pause := t.Pause
		pause = cmp.Or(pause, 10*time.Millisecond)
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func joined(bad map[string]error) error {
	var errs []error
	for name, err := range bad {
		errs = append(errs, fmt.Errorf("schedule %s: %w", name, err))
	}
	return errors.Join(errs...)
}

// due reads what is due and plans it, up to perTransaction steps. It looks without the write lock first, and
// plans without it: that may take long.
func (t *Ticker) due(ctx context.Context, bad map[string]error) (batch []planned, err error) {
	var found []schedules.Schedule
	var now time.Time
	err = t.Service.Store.Peek(ctx, func(tx *ledger.Tx) error {
		now = tx.Now()
		found, err = schedules.Due(ctx, tx, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	left := perTransaction
	for _, s := range found {
		if left == 0 {
			break
		}
		if bad[s.Spec.Name] != nil {
			continue
		}
		times, err := Times(s.Spec)
		if err != nil {
			bad[s.Spec.Name] = err
			continue
		}
		steps := plan(s, times, now)
		steps = steps[:min(len(steps), left)]
		left -= len(steps)
		batch = append(batch, planned{s, steps})
	}
	return batch, nil
}

// carryOutOrIsolate carries out the batch in one transaction. If what the ledger holds makes that fail, each
// schedule has a transaction of its own, and the errors go into bad.
func (t *Ticker) carryOutOrIsolate(ctx context.Context, batch []planned, done *Ticked,
	bad map[string]error) error {
	err := t.carryOut(ctx, batch, done)
	if err == nil || !isolable(err) {
		return err
	}
	for i, p := range batch {
		switch err := t.carryOut(ctx, batch[i:i+1], done); {
		case isolable(err):
			bad[p.Spec.Name] = err
		case err != nil:
			return err
		}
	}
	return nil
}

// isolable reports whether err is of what the ledger holds, and not of the ledger as a whole.
func isolable(err error) bool {
	return errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrUnknownKind) ||
		errors.Is(err, projection.ErrIllegal) || errors.Is(err, commands.ErrConflict) ||
		errors.Is(err, commands.ErrInvalid)
}

// carryOut carries out a batch in one transaction. A schedule that differs from the plan is skipped: another
// process carried it out, or it was changed.
func (t *Ticker) carryOut(ctx context.Context, batch []planned, done *Ticked) error {
	var now Ticked
	err := t.Service.Store.Write(ctx, func(tx *ledger.Tx) error {
		now = Ticked{}
		for _, p := range batch {
			s, err := schedules.Get(ctx, tx, p.Spec.Name)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(s.Spec, p.Spec) || !s.Next.Equal(p.Next) {
				continue
			}
			for _, step := range p.steps {
				if err := t.carryOutStep(ctx, tx, &s, step, &now); err != nil {
					return err
				}
				failpoint.Hit("ticked")
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	done.Jobs, done.Skipped = append(done.Jobs, now.Jobs...), done.Skipped+now.Skipped
	return nil
}

// carryOutStep records one step and moves s past it.
func (t *Ticker) carryOutStep(ctx context.Context, tx *ledger.Tx, s *schedules.Schedule, p step,
	done *Ticked) error {
	why, detail := p.why, ""
	var after []commands.Dependency
	if why == "" {
		var err error
		if after, why, detail, err = t.overlap(ctx, tx, *s, p.from); err != nil {
			return err
		}
	}
	if why == "" {
		j, err := t.enqueue(ctx, tx, *s, p, after)
		if err == nil {
			s.Next, s.LastTick, s.LastJob = p.next, p.from, j.N
			done.Jobs = append(done.Jobs, j)
			return nil
		}
		if !errors.Is(err, commands.ErrConflict) && !errors.Is(err, commands.ErrInvalid) ||
			errors.Is(err, ledger.ErrConflict) {
			return err
		}
		why, detail = event.SkippedRefused, commands.Detail(err.Error())
	}
	body := &event.ScheduleSkipped{Name: s.Spec.Name, From: p.from, To: p.to, Count: p.count, Why: why,
		Detail: detail, Next: p.next}
	if err := record(ctx, tx, t.Actor, *s, body); err != nil {
		return err
	}
	s.Next = p.next
	done.Skipped += p.count
	return nil
}

// overlap returns what the job of the tick waits for because of the last one, or why the tick makes no job;
// or it makes room for it.
func (t *Ticker) overlap(ctx context.Context, tx *ledger.Tx, s schedules.Schedule, tick time.Time) (
	after []commands.Dependency, why, detail string, err error) {
	if s.Spec.Overlap == event.OverlapAllow || s.LastJob == 0 {
		return nil, "", "", nil
	}
	id, err := projection.IDOf(ctx, tx, s.LastJob)
	if err != nil {
		return nil, "", "", err
	}
	j, ok, err := projection.Get(ctx, tx, id)
	if err != nil || !ok {
		return nil, "", "", err
	}
	wait := s.Spec.Overlap == event.OverlapWait
	delays, err := ends.DelaysOf(ctx, tx, j.N, tx.Now())
	if err != nil {
		return nil, "", "", err
	}
	if waits := j.State == event.Blocked || j.State == event.Queued && len(delays) > 0; wait && !waits {
		after, err = notEnded(ctx, tx, j)
		return after, "", "", err
	}
	if s.Spec.Overlap == event.OverlapReplace {
		if !j.State.Final() {
			j, err = commands.CancelIn(ctx, tx, t.Actor, j, commands.Cancel{Reason: "replaced by " +
				Key(s.Spec.Name, tick)})
		}
		if err == nil { // what was cancelled may still run
			after, err = notEnded(ctx, tx, j)
		}
		return after, "", "", err
	}
	switch open, err := notEnded(ctx, tx, j); {
	case err != nil:
		return nil, "", "", err
	case !j.State.Final():
		why, detail = event.SkippedOverlap, fmt.Sprintf("job %s is %s", id, j.State)
	case len(open) > 0:
		why, detail = event.SkippedOverlap, fmt.Sprintf("job %s is %s, and a command may still run", open[0].Job,
			j.State)
	}
	return nil, why, detail, nil
}

// notEnded returns the jobs among last and those that it was to wait for that have not ended, or whose
// commands may still run. The latter have not if last was cancelled while it waited, or if they were retried
// since.
func notEnded(ctx context.Context, tx *ledger.Tx, last projection.Job) (after []commands.Dependency,
	err error) {
	add := func(j projection.Job) error {
		open := !j.State.Final()
		if !open {
			until, err := ends.Open(ctx, tx, j, tx.Now())
			if err != nil {
				return err
			}
			open = !until.IsZero()
		}
		if open {
			after = append(after, commands.Dependency{Job: j.ID, On: event.OnFinished})
		}
		return nil
	}
	if err := add(last); err != nil {
		return nil, err
	}
	for _, text := range last.After {
		id, _, err := event.ParseReference(text)
		if err != nil {
			return nil, err
		}
		j, ok, err := projection.Get(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		if ok {
			if err := add(j); err != nil {
				return nil, err
			}
		}
	}
	return after, nil
}

func (t *Ticker) enqueue(ctx context.Context, tx *ledger.Tx, s schedules.Schedule, p step,
	after []commands.Dependency) (projection.Job, error) {
	e := job(s.Spec, Key(s.Spec.Name, p.from))
	e.After = after
	e.RunAt = p.from.Add(delay(s.Spec, p.from))
	return t.Service.EnqueueTick(ctx, tx, t.Actor, commands.Tick{Schedule: s, Job: e,
		Event: event.Enqueued{Tick: p.from, Next: p.next}})
}

// Run carries out what is due, at once and whenever a tick comes, until ctx is done. It calls report, which
// may be nil, after each look that did something.
func (t *Ticker) Run(ctx context.Context, report func(Ticked, error)) {
	poll := t.Poll
	poll = cmp.Or(poll, 5*time.Second)
	for {
		done, err := t.Tick(ctx)
		if ctx.Err() != nil && len(done.Jobs) == 0 {
			return
		}
		if report != nil && (err != nil || len(done.Jobs) > 0 || done.Skipped > 0) {
			report(done, err)
		}
		wait := poll
		if err == nil {
			wait = t.untilNext(ctx, poll)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// untilNext returns how long it is until the next tick of any schedule, at most poll.
func (t *Ticker) untilNext(ctx context.Context, poll time.Duration) time.Duration {
	wait := poll
	err := t.Service.Store.Peek(ctx, func(tx *ledger.Tx) error {
		next, err := schedules.NextTick(ctx, tx)
		if err == nil && !next.IsZero() {
			wait = max(min(poll, next.Sub(tx.Now())), time.Millisecond)
		}
		return err
	})
	if err != nil {
		return poll
	}
	return wait
}
