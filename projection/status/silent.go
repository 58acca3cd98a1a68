package status

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// LostWorker is a worker process that fell silent without having announced its end.
type LostWorker struct {
	Worker
	Replaced time.Time // the next start of a worker of its name on its host, by which it was gone; zero: none
}

// LostWorkers returns the processes that had started and not stopped at to, whose last sign of life is within
// from and to, and of which nothing shows up to now that they lived on; the earliest first. Their Jobs are
// those held at to. It costs the starts of workers and the events of the window, or, where these are many,
// the last claims of each process instead.
func LostWorkers(ctx context.Context, tx *ledger.Tx, from, to projection.Moment) (lost []LostWorker,
	err error) {
	found := make(map[int64]*Worker)
	if err := findPresent(ctx, tx, found); err != nil {
		return nil, err
	}
	if err := addLives(ctx, tx, found, to, true); err != nil {
		return nil, err
	}
	known, err := knowledgeAt(ctx, tx, to)
	if err != nil {
		return nil, err
	}
	over, err := takenOver(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	held, err := heldAt(ctx, tx, to)
	if err == nil {
		err = addHeld(ctx, tx, found, held)
	}
	if err != nil {
		return nil, err
	}
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	acted, err := actedWithin(ctx, tx, from, to, int64(len(found)))
	if err != nil {
		return nil, err
	}
	starts := startsOf(found)
	for n, w := range found {
		if !w.announced || w.lives <= 0 || !w.later.IsZero() || w.present.After(to.At) ||
			acted != nil && !acted[n] && !latestOf(w.StartedAt, w.StoppedAt, w.present).After(from.At) {
			continue
		}
		if w.signs, err = signsOf(ctx, tx, n, over[n], to, to.Pos < tail); err != nil {
			return nil, err
		}
		until := known.of(w, to.At)
		w.judge(until, until, starts)
		if w.State == Silent && w.SeenAt.After(from.At) && !w.SeenAt.After(to.At) {
			lost = append(lost, LostWorker{*w, starts.next(w, w.SeenAt)})
		}
	}
	slices.SortFunc(lost, func(a, b LostWorker) int {
		return cmp.Or(a.SeenAt.Compare(b.SeenAt), cmp.Compare(a.Boot, b.Boot))
	})
	return lost, nil
}

const actors = `SELECT DISTINCT e.worker FROM events e
WHERE e.pos > ? AND e.pos <= ? AND e.worker IS NOT NULL`

// actedWithin returns which processes the events after from up to to are about; nil: they are so many that to
// look at the last claims of so many processes costs less.
func actedWithin(ctx context.Context, tx *ledger.Tx, from, to projection.Moment, processes int64) (
	acted map[int64]bool, err error) {
	if to.Pos-from.Pos > processes*maxRecentClaims {
		return nil, nil
	}
	found, err := table.Numbers(ctx, tx, actors, from.Pos, to.Pos)
	acted = make(map[int64]bool)
	for _, n := range found {
		acted[n] = true
	}
	return acted, err
}

// starts are the first starts of processes, by name and host.
type starts map[[2]string][]start

type start struct {
	boot string
	at   time.Time
}

func startsOf(found map[int64]*Worker) starts {
	all := make(starts)
	for _, w := range found {
		if w.announced {
			of := [2]string{w.Name, w.Host}
			all[of] = append(all[of], start{w.Boot, w.StartedAt})
		}
	}
	return all
}

// next returns when another process of the name of w, on its host, started after a time; zero: none did.
func (s starts) next(w *Worker, after time.Time) (next time.Time) {
	for _, o := range s[[2]string{w.Name, w.Host}] {
		if o.boot != w.Boot && o.at.After(after) {
			next = earliest(next, o.at)
		}
	}
	return next
}

// knowledge is up to when the ledger shows what processes did.
type knowledge struct {
	now      time.Time
	imported time.Time // the at of the last event that was imported; zero: none was
}

// knowledgeAt returns what is known for a question about m.
func knowledgeAt(ctx context.Context, tx *ledger.Tx, m projection.Moment) (k knowledge, err error) {
	k.now = latestOf(tx.Now(), m.At)
	mark, _, err := tx.OneEvent(ctx, ledger.Filter{Kinds: []event.Kind{event.KindImported}, Last: true})
	b, ok := mark.Body.(*event.Imported)
	if err != nil || !ok {
		return k, err
	}
	at, _, err := projection.TimeOfEvent(ctx, tx, b.Events)
	k.imported = event.FromMicros(at)
	return k, err
}

// of returns up to when the ledger would show that w lived. An import has no presence, so nothing shows that
// of a process after its end.
func (k knowledge) of(w *Worker, now time.Time) time.Time {
	if w.present.IsZero() && !w.StartedAt.After(k.imported) {
		return latestOf(k.imported, now)
	}
	return k.now
}
