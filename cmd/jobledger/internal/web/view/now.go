package view

import (
	"context"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/inbox"
)

// How long figures may be used again, in times of what they cost: a twentieth of a processor at most goes
// into them, however many ask and however large the ledger is.
const (
	shareOfFigures = 20
	oldestFigures  = 2 * time.Second // of a ledger in which nothing is recorded
)

// Now has the figures of now, read once for all who ask within a short time. They are all as of one position,
// which they name. It is safe for concurrent use; the zero value is ready.
type Now struct {
	mu    sync.Mutex
	last  Figures
	at    time.Time // on the monotonic clock; zero: there are none
	asked time.Time // the moment of the figures
	cost  time.Duration

	minutes Minutes
}

// Read returns the figures, which may be those of a moment ago: the longer ago, the longer it takes to read
// them. asked is that moment.
func (n *Now) Read(ctx context.Context, tx *ledger.Tx, now time.Time) (f Figures, asked time.Time,
	err error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return f, now, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	holds, err := await.SeenEnd{Pos: n.last.Pos, Last: &n.last.Last}.Holds(ctx, tx, tail)
	if err != nil {
		return f, now, err
	}
	age := time.Since(n.at)
	if !n.at.IsZero() && holds && (n.last.Pos == tail && age < oldestFigures ||
		age < shareOfFigures*n.cost && n.cost > 10*time.Millisecond) {
		return n.last, n.asked, nil
	}
	began := time.Now()
	if f, err = ReadFigures(ctx, tx, now); err != nil {
		return f, now, err
	}
	if err = f.addProblems(ctx, tx, &n.minutes, projection.Now(now)); err != nil {
		return f, now, err
	}
	if err = f.addCourse(ctx, tx, &n.minutes, now); err != nil {
		return f, now, err
	}
	n.last, n.at, n.asked, n.cost = f, time.Now(), now, time.Since(began)
	return f, now, nil
}

// ReadGauges reads what metrics show, and keeps nothing but what was counted.
func (n *Now) ReadGauges(ctx context.Context, tx *ledger.Tx, now time.Time) (f Figures, err error) {
	if f, err = ReadFigures(ctx, tx, now); err != nil {
		return f, err
	}
	if f.Inbox, err = inbox.Count(ctx, tx); err != nil {
		return f, err
	}
	return f, f.addProblems(ctx, tx, &n.minutes, projection.Now(now))
}

// Kept is a value that is read once and then shared for twenty times as long as reading it took, so that it
// takes at most a twentieth of a processor. It is safe for concurrent use; the zero value is ready.
type Kept[T any] struct {
	mu   sync.Mutex
	last T
	at   time.Time // on the monotonic clock; zero: there is none
	cost time.Duration
}

// Read returns the kept value if it is young enough, else the result of read. A value younger than least is
// always young enough. While another reads it, it waits for that.
func (k *Kept[T]) Read(least time.Duration, read func() (T, error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.at.IsZero() && time.Since(k.at) < max(least, shareOfFigures*k.cost) {
		return k.last, nil
	}
	began := time.Now()
	value, err := read()
	if err != nil {
		return value, err
	}
	k.last, k.at, k.cost = value, time.Now(), time.Since(began)
	return value, nil
}
