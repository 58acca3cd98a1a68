package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/internal/usertx"
	"jobledger/ledger"
)

// Relay moves the rows of an outbox into a ledger. Fill in the fields and call Run or Drain. Several relays
// of the same outbox do no harm; one is enough.
type Relay struct {
	Service *commands.Service // of the ledger

	// From is the database with the outbox: a *sql.DB, a pgx pool, or a [Source], which on PostgreSQL is
	// notified of new rows.
	From any

	Actor string        // who enqueues, in the ledger; default "outbox"
	Poll  time.Duration // how often an idle relay reads that is not woken; default 10ms
	Log   *slog.Logger  // default: discards
	Moved func(Moved)   // called after each step that moved or refused rows; nil: not called

	// KeepOnce is how long Run keeps the rows of worker.Once in From after they were written; default 90
	// days, negative: for ever. It looks at its start and once a day, and removes those whose job has ended:
	// only an operator's retry makes such a job run again, and with it its effect.
	KeepOnce time.Duration

	once sync.Once
	wake chan struct{}
}

// Moved counts rows.
type Moved struct {
	Jobs     int          // that became jobs
	Existing int          // whose job was there before
	Refused  []RefusedRow // that the ledger does not take
}

func (m *Moved) count(answers []commands.Enqueued) {
	for _, a := range answers {
		if a.Existing {
			m.Existing++
		} else {
			m.Jobs++
		}
	}
}

func (m *Moved) add(other Moved) {
	m.Jobs, m.Existing = m.Jobs+other.Jobs, m.Existing+other.Existing
	m.Refused = append(m.Refused, other.Refused...)
}

// A transaction that calls Enqueue commits a little later, and nothing says when. So the relays of this
// process look often for that long.
const (
	soon     = 100 * time.Millisecond
	soonPoll = 500 * time.Microsecond
)

// stepEvery is the shortest time from one step to the next, unless a step took all that it asked for.
const stepEvery = 2 * time.Millisecond

const (
	defaultPoll  = 10 * time.Millisecond
	notifiedPoll = time.Second // of a Source that is notified: notifications may be lost
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// running are the relays at work in this process.
var running relays

type relays struct {
	mu  sync.Mutex
	all map[*Relay]bool
}

// expect wakes all relays.
func (l *relays) expect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.all {
		r.Wake()
	}
}

func (l *relays) add(r *Relay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[*Relay]bool)
	}
	l.all[r] = true
}

func (l *relays) remove(r *Relay) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, r)
}

func (r *Relay) actor() string { return cmp.Or(r.Actor, "outbox") }

func (r *Relay) log() *slog.Logger {
	if r.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Log
}

func (r *Relay) wakeChannel() chan struct{} {
	r.once.Do(func() { r.wake = make(chan struct{}, 1) })
	return r.wake
}

// Wake makes Run look at once. A program that calls it after its commit saves the relay the half millisecond
// between two looks; [Enqueue] in the same process calls it too. It is safe for concurrent use.
func (r *Relay) Wake() {
	select {
	case r.wakeChannel() <- struct{}{}:
	default:
	}
}

// Run moves rows until ctx ends, which is not an error. A busy or full ledger, and a database that does not
// answer, do not end it, except at the first look: it tries again, with pauses of up to a second. It returns
// [ledger.ErrReplaced], [ledger.ErrClosed] or [ledger.ErrDamaged] if the ledger is gone.
func (r *Relay) Run(ctx context.Context) error {
	m, err := r.mover(ctx)
	if err == nil {
		if _, _, readErr := m.read(ctx); readErr != nil { // there is no such table, for example
			err = &sourceError{readErr}
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	running.add(r)
	defer running.remove(r)
	source, _ := r.From.(*Source)
	if source != nil {
		defer source.listen(ctx, r.Wake)()
	}
	pause, often, forget := time.Duration(0), time.Time{}, time.Now()
	for ctx.Err() == nil {
		began, asked := time.Now(), m.limit
		n, moved, err := m.step(ctx)
		r.report(moved, err == nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && isGone(err):
			return err
		case err != nil:
			if pause == 0 {
				r.log().Warn("relay", "error", err)
			}
			pause = min(max(2*pause, firstPause), longestPause)
		case pause > 0:
			r.log().Info("relay goes on")
			pause = 0
		}
		if n > 0 {
			if n < asked { // what comes meanwhile shares the next step, and its commits
				time.Sleep(stepEvery - time.Since(began))
			}
			continue // there may be more
		}
		if pause == 0 && !time.Now().Before(forget) {
			forget = time.Now().Add(forgetEvery)
			removed, err := m.forget(ctx)
			if err != nil && ctx.Err() == nil {
				r.log().Warn("rows of worker.Once are not removed", "error", err)
			}
			if removed > 0 {
				r.log().Info("removed old rows of worker.Once", "rows", removed)
			}
		}
		wait := pause
		switch now := time.Now(); {
		case pause > 0:
		case now.Before(often):
			wait = soonPoll
		case source != nil && source.listening.Load():
			wait = max(notifiedPoll, r.Poll)
		default:
			wait = cmp.Or(r.Poll, defaultPoll)
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.wakeChannel():
			often = time.Now().Add(soon)
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// Drain moves the rows that there are, and returns when there is none left to move.
func (r *Relay) Drain(ctx context.Context) (all Moved, err error) {
	m, err := r.mover(ctx)
	if err != nil {
		return all, err
	}
	for {
		n, moved, err := m.step(ctx)
		if err != nil {
			return all, err
		}
		r.report(moved, true)
		all.add(moved)
		if n == 0 {
			return all, nil
		}
	}
}

func (r *Relay) mover(ctx context.Context) (*mover, error) {
	if r.Service == nil {
		return nil, errors.New("outbox: a Relay needs a Service")
	}
	if err := commands.CheckActor(r.actor()); err != nil {
		return nil, err
	}
	conn, err := usertx.Of(r.From)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return &mover{Relay: r, conn: conn, limit: firstRows}, ctx.Err()
}

// report logs refused rows once the outbox has them as such.
func (r *Relay) report(moved Moved, done bool) {
	if !done {
		return
	}
	for _, row := range moved.Refused {
		r.log().Error("refused", "job", row.ID, "why", row.Why)
	}
	if r.Moved != nil && moved.Jobs+moved.Existing+len(moved.Refused) > 0 {
		r.Moved(moved)
	}
}

// isGone reports whether err means that the ledger does not come back.
func isGone(err error) bool {
	source := (*sourceError)(nil)
	return !errors.As(err, &source) && (errors.Is(err, ledger.ErrReplaced) ||
		errors.Is(err, ledger.ErrClosed) || errors.Is(err, ledger.ErrDamaged))
}
