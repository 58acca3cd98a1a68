package view

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
	"jobledger/projection/verdict"
)

// Limits of [Minutes].
const (
	minutesEvents = 100_000                    // that are read at the start, at most, or at once later
	minutesKept   = depthMinutes * time.Minute // what is older is dropped, an hour later
	maxMinutes    = 100_000                    // of all queues: then the older half of the time is dropped
)

// MinuteEnds are the upper ends of the buckets in which [Minutes] count durations: 2^-10 s to 2^17 s, four
// for each doubling, so that an end is at most 19 % above what is in its bucket.
var MinuteEnds = func() (ends [27*4 + 1]time.Duration) {
	for i := range ends {
		ends[i] = time.Duration(math.Round(1e6*math.Pow(2, float64(i)/4-10))) * time.Microsecond
	}
	return ends
}()

// durations count durations by bucket, of which most minutes have few.
type durations []counted

// counted is a bucket; len(MinuteEnds) is the one above all ends.
type counted struct {
	bucket int32
	n      uint32
}

func (d *durations) add(micros int64) {
	i, _ := slices.BinarySearch(MinuteEnds[:], time.Duration(micros)*time.Microsecond)
	for k := range *d {
		if (*d)[k].bucket == int32(i) {
			(*d)[k].n++
			return
		}
	}
	*d = append(*d, counted{int32(i), 1})
}

// minute counts what happened in one queue in one minute.
type minute struct {
	at           int64 // minutes since 1970
	kinds        [event.KindCancelled + 1]uint32
	waits, runs  durations
	queued, held int64 // at its end, counted from the first minute
}

// Minutes count what each queue did, minute by minute, from some hours ago on. They read each event once for
// all who ask. Both what they hold and what they read at once are limited. They are safe for concurrent use;
// the zero value is ready.
type Minutes struct {
	mu     sync.Mutex
	moves  follow.Transitions
	recent *verdict.Recent // of a day, for the rules
	end    await.SeenEnd   // of what was read
	from   time.Time       // what happened since then counts
	queues map[string][]minute
	count  int // of all queues
}

// refresh reads what was recorded up to tail since the last call. At the first call, and where there is too
// much to read, it begins again.
func (m *Minutes) refresh(ctx context.Context, tx *ledger.Tx, tail int64, now time.Time) error {
	holds, err := m.end.Holds(ctx, tx, tail)
	if err != nil {
		return err
	}
	if m.queues == nil || tail < m.moves.Pos || !holds || tail-m.moves.Pos > minutesEvents {
		recent, pos, err := verdict.Begin(ctx, tx, now, tail, minutesEvents)
		if err != nil {
			return err
		}
		m.end, m.recent, m.from = await.SeenEnd{}, recent, now.Add(-minutesKept)
		if m.moves = (follow.Transitions{Pos: pos}); recent.Part && recent.Since.After(m.from) {
			m.from = recent.Since
		}
		m.queues, m.count = make(map[string][]minute), 0
	}
	var failed error
	feed := verdict.Feed(ctx, tx, m.recent, &failed)
	err = m.moves.Read(ctx, tx, tail, func(e *follow.Transition) {
		feed(e)
		if e.At > event.Micros(m.from) {
			m.add(e)
		}
	})
	if err = cmp.Or(err, failed); err == nil {
		err = m.end.Move(ctx, tx, tail)
	}
	if err != nil {
		m.queues = nil // it begins again
		return err
	}
	if m.count > maxMinutes || now.Sub(m.from) > minutesKept+time.Hour {
		m.drop(now)
	}
	return nil
}

// drop drops the minutes that are too old, and where there are too many the older half of the time.
func (m *Minutes) drop(now time.Time) {
	if since := now.Add(-minutesKept); m.from.Before(since) {
		m.from = since
	}
	if m.count > maxMinutes {
		m.from = m.from.Add(now.Sub(m.from) / 2)
	}
	m.count = 0
	first := minuteOf(event.Micros(m.from)) + 1
	m.from = time.Unix(60*first, 0).UTC()
	for name, all := range m.queues {
		i, _ := slices.BinarySearchFunc(all, first, func(n minute, at int64) int { return int(n.at - at) })
		i = max(0, min(i, len(all)-1)) // the last one has the depth
		m.queues[name] = slices.Clone(all[i:])
		m.count += len(m.queues[name])
	}
}

func minuteOf(micros int64) int64 { return micros / int64(time.Minute/time.Microsecond) }

func (m *Minutes) add(e *follow.Transition) {
	all := m.queues[e.Queue]
	at := minuteOf(e.At)
	if n := len(all); n == 0 || all[n-1].at < at {
		next := minute{at: at}
		if n > 0 {
			next.queued, next.held = all[n-1].queued, all[n-1].held
		}
		all = append(all, next)
		m.queues[e.Queue] = all
		m.count++
	}
	now := &all[len(all)-1]
	if int(e.Kind) < len(now.kinds) {
		now.kinds[e.Kind]++
	}
	if e.Wait >= 0 {
		now.waits.add(e.Wait)
	}
	if e.Run >= 0 {
		now.runs.add(e.Run)
	}
	now.queued += follow.Change(e.From, e.To, follow.IsQueued)
	now.held += follow.Change(e.From, e.To, event.State.Held)
}
