package status

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// LostWorker is a worker process that fell silent without having announced its end.
type LostWorker struct {
	Worker
	Replaced time.Time // the next start of a worker of its name on its host, by which it was gone; zero: none
}

// LostWorkers returns the processes that had started and not stopped at to, whose last sign of life is within
// from and to, and of which nothing shows up to now that they lived on; the earliest first. Their Jobs are
// those held at to. Its cost grows with the starts of workers, not with the events in between.
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
	starts := startsOf(found)
	for n, w := range found {
		if !w.announced || w.lives <= 0 || !w.later.IsZero() || w.present.After(to.At) {
			continue
		}
		if w.signs, err = signsOf(ctx, tx, n, over[n], to, true); err != nil {
			return nil, err
		}
		jobs, err := heldThen(ctx, tx, n, over[n], to)
		if err != nil {
			return nil, err
		}
		w.Jobs = jobs
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
	mark, err := onlyEvent(ctx, tx, ledger.Filter{Kinds: []event.Kind{event.KindImported}, Limit: 1, Last: true})
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
