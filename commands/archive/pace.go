package archive

import (
	"context"
	"time"

	"jobledger/ledger"
)

// stepTime is for how long a step may keep others from writing, about. It is what the slowest of a hundred
// claims takes longer than without.
const stepTime = 2 * time.Millisecond

const (
	fewest  = 25 // how much a step does at least, however long the steps before took
	firstly = 32 // how much the first one does
)

// pace fits the size of steps to the time that they take: on a busy machine or a slow disk they are smaller.
// The zero pace begins with small ones.
type pace struct {
	most  int
	steps int
}

// next returns how much the next step does, up to limit.
func (p *pace) next(limit int) int {
	if p.most == 0 {
		p.most = firstly
	}
	p.most = min(max(p.most, fewest), limit)
	return p.most
}

// took says for how long a step with so many jobs or pages kept others from writing.
func (p *pace) took(n int, d time.Duration) {
	switch {
	case d > stepTime:
		p.most = int(int64(n) * int64(stepTime) / int64(d))
	case n >= p.most && d < stepTime/2:
		p.most = 2 * n
	case n >= p.most:
		p.most = n + n/8
	}
}

// write runs fn, which removes n jobs, in a transaction, and measures it from the begin of fn to the answer.
func (p *pace) write(ctx context.Context, store *ledger.Store, n int, fn func(*ledger.Tx) error) error {
	var began time.Time
	err := store.Write(ctx, func(tx *ledger.Tx) error {
		began = time.Now()
		return fn(tx)
	})
	if err == nil {
		p.took(n, time.Since(began))
	}
	return err
}

// moveAfter is after how many steps what they changed is moved out of the -wal file: SQLite would have the
// commit move it that comes to a thousand pages, which may be one of a worker.
const moveAfter = 4

// pause leaves the ledger to others, for as long as a step took.
func (p *pace) pause(ctx context.Context, store *ledger.Store, d time.Duration) error {
	if p.steps++; p.steps%moveAfter == 0 {
		if err := store.MoveWAL(ctx); err != nil {
			return err
		}
	}
	return pause(ctx, d)
}

// pause waits, for a second at most.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(min(d, time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
