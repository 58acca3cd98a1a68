package archive

import (
	"cmp"
	"context"
	"time"

	"jobledger/ledger"
)

// For how long a step may keep others from writing, about, with its commit. It is what the slowest of a
// hundred claims takes longer than without.
const (
	stepTime       = 1200 * time.Microsecond
	stepTimeServer = 2 * time.Millisecond // a step on a server has many round trips
)

const (
	fewest  = 10 // how much a step does at least, however long the steps before took
	firstly = 16 // how much the first one does
)

// othersFor is for how long steps make room for others after these were seen to write.
const othersFor = time.Second

// pace fits the size of steps to the time that they take, so that they are smaller on a busy machine or a
// slow disk, and makes room for others between them.
type pace struct {
	store  *ledger.Store
	server bool
	most   int // what a step does
	steps  int
	lasts  time.Duration // for how long a step keeps others from writing, by the last few
	tail   int64         // the last event after the last step
	others time.Time     // when others were last seen to have written
}

func newPace(store *ledger.Store) *pace {
	return &pace{store: store, server: ledger.IsServerAddress(store.DSN()), most: firstly, others: time.Now()}
}

// next returns how much the next step does, up to limit.
func (p *pace) next(limit int) int {
	p.most = min(max(p.most, fewest), limit)
	return p.most
}

// fit takes in for how long a step that did so much kept others from writing. The size of the next steps
// follows the median of these times, and shrinks slowly, so that a few slow steps, as on a busy machine,
// count no more than fast ones.
func (p *pace) fit(n int, took time.Duration) {
	p.lasts = cmp.Or(p.lasts, took)
	p.lasts += (took - p.lasts) / 8
	limit := stepTime
	if p.server {
		limit = stepTimeServer
	}
	switch {
	case took > limit:
		p.most = max(int(int64(n)*int64(limit)/int64(took)), n-n/8-1)
	case n >= p.most && took < limit/2:
		p.most = 2 * n
	case n >= p.most:
		p.most = n + n/8 + 1
	}
}

// begin compares the last event before a step with that after the step before: others wrote what is between.
func (p *pace) begin(tail int64) {
	if tail != p.tail {
		p.tail, p.others = tail, time.Now()
	}
}

// write runs fn, which removes n jobs, in a transaction, and measures it from the begin of fn to the answer.
func (p *pace) write(ctx context.Context, n int, fn func(*ledger.Tx) error) error {
	var began time.Time
	var before, after int64
	err := p.store.Write(ctx, func(tx *ledger.Tx) error {
		began, before = time.Now(), tx.Next()-1
		err := fn(tx)
		after = tx.Next() - 1
		return err
	})
	if err == nil {
		p.fit(n, time.Since(began))
		p.begin(before)
		p.tail = after
	}
	return err
}

// free gives free pages of the file back in one step, and returns how many are left.
func (p *pace) free(ctx context.Context, limit int) (left int64, err error) {
	err = p.store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		p.begin(tail)
		return err
	})
	if err != nil {
		return 0, err
	}
	most, began := p.next(limit), time.Now()
	left, err = p.store.FreePages(ctx, most)
	p.fit(most, time.Since(began))
	return left, err
}

// moveAfter is after how many steps what they changed is moved out of the -wal file: SQLite would have the
// commit move it that comes to a thousand pages, which may be one of a worker.
const moveAfter = 4

// pause leaves the ledger to others after a step: for twice as long as steps take, so that two of three
// claims meet none, and on a server for as long. If no other writes, it does not wait.
func (p *pace) pause(ctx context.Context) error {
	if p.steps++; p.steps%moveAfter == 0 {
		if err := p.store.MoveWAL(ctx); err != nil {
			return err
		}
	}
	d := min(p.lasts, time.Second)
	switch {
	case p.server:
	case time.Since(p.others) > othersFor:
		return ctx.Err()
	default:
		d *= 2
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
