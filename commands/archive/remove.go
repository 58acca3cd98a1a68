package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jobledger/commands"
	"jobledger/commands/internal/journal"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/segment"
	"jobledger/projection"
	"jobledger/projection/past"
)

// Removal removes jobs from the ledger that ended long ago, with all their events, which are in segment
// files. It works in steps, each a short transaction, so that workers are not kept waiting. Whatever stops
// it, what it has not removed is still there, and another Removal goes on.
type Removal struct {
	Service   *commands.Service
	Dir       string        // the folder of the segment files
	Actor     string        // recorded in the events
	Reason    string        // likewise
	OlderThan time.Duration // jobs that ended at least so long ago
	// failed jobs that ended at least so long ago; 0: as OlderThan
	KeepFailed time.Duration
	KeepBodies bool // payloads and results stay in the ledger, where Erase reaches them
	// Logs is the folder with the output of the jobs' commands; that of the jobs that left is removed. "": no
	// output is removed. What a crash leaves there does no harm.
	Logs string

	after    int64   // the last job that was looked at
	found    []int64 // the jobs of the next steps
	pace     *pace   // how many of them a step removes
	segments []File
	read     map[int64]bool // by Hi: segment files that were compared with the ledger
}

// removedAtOnce is how many jobs a step removes at most.
const removedAtOnce = 200

// rules returns the rules of now.
func (m *Removal) rules(ctx context.Context, tx *ledger.Tx) (r past.Rules, err error) {
	last, err := projection.LastSegment(ctx, tx)
	if err != nil {
		return r, err
	}
	now := tx.Now()
	r = past.Rules{Hi: last.Hi, LastAt: last.LastAt, EndedBefore: now.Add(-m.OlderThan),
		KeepBodies: m.KeepBodies}
	if m.KeepFailed > m.OlderThan {
		r.FailedBefore = now.Add(-m.KeepFailed)
	}
	return r, nil
}

// Step removes up to 200 jobs, or as many as it can within little more than a millisecond,
// by the time that the last steps took. more is false if there are no others, by what the ledger is now.
// Before it removes anything, it compares the SHA-256 of each file with events of these jobs, once, with the
// one that was recorded when the file had been compared with the events. Errors: ErrMissing;
// segment.ErrDamaged.
func (m *Removal) Step(ctx context.Context) (done event.Removed, more bool, err error) {
	if m.pace == nil {
		m.pace = newPace(m.Service.Store)
	}
	most := m.pace.next(removedAtOnce)
	err = m.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		if len(m.found) > most {
			return nil
		}
		some, err := m.find(ctx, tx)
		if m.found = append(m.found, some...); err == nil {
			m.segments, err = ListIn(ctx, tx, m.Dir)
		}
		return err
	})
	ns := m.found[:min(most, len(m.found))]
	if err != nil || len(ns) == 0 {
		return done, false, err
	}
	m.found = m.found[len(ns):]
	for i := range m.segments {
		if f := &m.segments[i]; f.Hi >= ns[0] {
			if err := m.compare(f); err != nil {
				return done, false, err
			}
		}
	}
	failpoint.Hit("remove-compared")
	newest := m.segments[len(m.segments)-1]
	more = len(m.found) > 0
	var ids []event.JobID
	err = m.pace.write(ctx, len(ns), func(tx *ledger.Tx) error {
		r, err := m.rules(ctx, tx)
		if err != nil {
			return err
		}
		r.Hi, r.LastAt = newest.Hi, newest.LastAt
		ids, done, err = journal.Remove(ctx, tx, m.Actor, r, ns, more, m.Reason)
		return err
	})
	if err != nil {
		return done, more, err
	}
	failpoint.Hit("removed")
	if m.Logs != "" {
		var logsErr error // each is tried: the events have left already
		for _, id := range ids {
			logsErr = errors.Join(logsErr, attemptlog.Remove(m.Logs, id))
		}
		if logsErr != nil {
			return done, more, logsErr
		}
	}
	return done, more, nil
}

// find returns the next jobs that may leave; none if there are no more.
func (m *Removal) find(ctx context.Context, tx *ledger.Tx) (ns []int64, err error) {
	r, err := m.rules(ctx, tx)
	for err == nil && r.Hi > 0 && len(ns) == 0 {
		var found []int64
		found, err = past.Candidates(ctx, tx, r, m.after, removedAtOnce)
		if err != nil || len(found) == 0 {
			return nil, err
		}
		m.after = found[len(found)-1]
		ns, err = past.Removable(ctx, tx, r, found)
	}
	return ns, err
}

// Count returns how many jobs would leave, at most, if the events up to hi were archived, which may be fewer
// than are archived: it counts by the rows of jobs alone.
func (m *Removal) Count(ctx context.Context, hi int64) (jobs int64, err error) {
	err = m.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		r, err := m.rules(ctx, tx)
		if r.Hi = max(r.Hi, hi); err == nil {
			jobs, err = past.CountCandidates(ctx, tx, r)
		}
		return err
	})
	return jobs, err
}

// compare compares the SHA-256 of the file f with that of the ledger, unless that was done before. What the
// file holds was compared with the ledger's blocks before its SHA-256 was recorded.
func (m *Removal) compare(f *File) error {
	if m.read[f.Hi] {
		return nil
	}
	if f.State == Missing {
		return fmt.Errorf("%w: the events %d to %d are in %s, and stay in the ledger too", ErrMissing, f.Lo+1, f.Hi,
			f.Path)
	}
	sum, err := segment.Sum(f.Path)
	if err != nil {
		return err
	}
	if sum := fmt.Sprintf("%x", sum); sum != f.SHA256 {
		return fmt.Errorf("%w: %s has the SHA-256 %s, and the ledger names %s", segment.ErrDamaged, f.Path, sum,
			f.SHA256)
	}
	if m.read == nil {
		m.read = make(map[int64]bool)
	}
	m.read[f.Hi] = true
	return nil
}

// All removes everything that may leave, with a pause after each step while others write. It returns the sum
// of what it removed, and calls each, if that is not nil, after each step.
func (m *Removal) All(ctx context.Context, each func(event.Removed)) (sum event.Removed, err error) {
	for more := true; more && err == nil; {
		var done event.Removed
		if done, more, err = m.Step(ctx); err != nil {
			break
		}
		sum.Hi = max(sum.Hi, done.Hi)
		sum.Jobs += done.Jobs
		sum.Events += done.Events
		sum.Bodies += done.Bodies
		sum.BodyBytes += done.BodyBytes
		sum.Keys += done.Keys
		sum.Kept += done.Kept
		if each != nil {
			each(done)
		}
		if more {
			err = m.pace.pause(ctx)
		}
	}
	return sum, errors.Join(err, ctx.Err())
}

// pagesAtOnce is how many pages one step of Shrink gives back at most: about a megabyte.
const pagesAtOnce = 256

// Shrink gives the free pages of the ledger's file back to the system, in short transactions with pauses as
// Removal has them, and then shortens the -wal file. If the file cannot shrink, it does nothing.
func Shrink(ctx context.Context, store *ledger.Store) error {
	if err := shrink(ctx, newPace(store), time.Time{}); err != nil {
		return err
	}
	_, err := store.TrimWAL(ctx)
	return err
}

// shrink gives free pages back until then; the zero time: all.
func shrink(ctx context.Context, p *pace, until time.Time) error {
	for before := int64(-1); until.IsZero() || time.Now().Before(until); {
		left, err := p.free(ctx, pagesAtOnce)
		if err != nil {
			return err
		}
		failpoint.Hit("shrunk")
		if left == 0 || left == before {
			return nil
		}
		before = left
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
	return nil
}
