package bench

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

// snapshot is the state of the ledger at some moment.
type snapshot struct {
	tail    int64
	bytes   int64           // of the file, without free pages
	jobs    int64           // all
	left    int64           // not finished
	commits int             // after the pos that was asked for
	took    []time.Duration // from a claim to its success, after that pos
}

// snapshot reads the state of the ledger. With after negative it leaves out the events and the size.
func (b *run) snapshot(ctx context.Context, after int64) (s snapshot, err error) {
	err = b.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		s = snapshot{}
		if s.tail, err = tx.Tail(ctx); err != nil {
			return err
		}
		queues, err := status.Queues{At: projection.Now(tx.Now())}.Read(ctx, tx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			for state, n := range q.Jobs {
				s.jobs += n
				if state == event.Queued || state.Held() {
					s.left += n
				}
			}
		}
		if after < 0 {
			return nil
		}
		if s.bytes, err = bytesUsed(ctx, tx); err != nil {
			return err
		}
		return s.readEvents(ctx, tx, after)
	})
	return s, err
}

const selectBytesUsed = `SELECT (p.page_count - f.freelist_count) * s.page_size
	FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`

func bytesUsed(ctx context.Context, tx *ledger.Tx) (n int64, err error) {
	rows, err := tx.Query(ctx, selectBytesUsed)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&n)
	}
	return n, cmp.Or(err, rows.Err())
}

// readEvents counts commits by the times of events: all events of a transaction have the same.
func (s *snapshot) readEvents(ctx context.Context, tx *ledger.Tx, after int64) error {
	var last time.Time
	claimed := make(map[event.JobID]time.Time)
	for e, err := range tx.Events(ctx, ledger.Filter{After: after}) {
		if err != nil {
			return err
		}
		if !e.At.Equal(last) {
			last = e.At
			s.commits++
		}
		switch e.To {
		case event.ClaimedState:
			claimed[e.Job] = e.At
		case event.SucceededState:
			s.took = append(s.took, e.At.Sub(claimed[e.Job]))
			delete(claimed, e.Job)
		}
	}
	return nil
}

// check verifies the ledger.
func (b *run) check(ctx context.Context) error {
	v, err := ledger.Read(ctx, b.service.Store, func(tx *ledger.Tx) (audit.Verified, error) {
		return audit.Verify(ctx, tx, nil)
	})
	if err == nil && len(v.Findings) > 0 {
		f := v.Findings[0]
		err = wrongf("verify has %d findings; the first: %s event %d job %s field %s: %s",
			len(v.Findings), f.Code, f.Pos, f.Job, f.Field, f.Detail)
	}
	return err
}

// setRate sets how long so many jobs took; 0 jobs: they were paced.
func (r *Result) setRate(took time.Duration, jobs int) {
	r.Seconds = took.Seconds()
	if jobs > 0 {
		r.JobsPerS = new(float64(jobs) / r.Seconds)
	}
}

// setSyncs sets the commits per job, if they are durable.
func (r *Result) setSyncs(s snapshot) {
	if r.Sync == "full" {
		r.SyncsPerJob = new(float64(s.commits) / float64(r.Jobs))
	}
}

// setTimes sets the quantiles of d.
func (r *Result) setTimes(d []time.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(q float64) *float64 { return new(d[int(q*float64(len(d)-1))].Seconds() * 1000) }
	r.P50, r.P99, r.Max = at(0.50), at(0.99), at(1)
}

// setExecutions sets the executions. It is ErrWrong unless each job has run once and none is left.
func (r *Result) setExecutions(t tally, left int64) error {
	all, twice := t.executions()
	r.Executions, r.Left = &all, new(int(left))
	if all != r.Jobs || twice > 0 || left > 0 {
		return wrongf("%d jobs were run %d times, %d of them more than once, and %d are left",
			r.Jobs, all, twice, left)
	}
	return nil
}

// fsyncRate measures for a short while how many times a second the disk of folder makes an overwritten page
// durable. Durable commits one after another cannot be faster.
func fsyncRate(folder string) (float64, error) {
	f, err := os.CreateTemp(folder, "fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	syncs, start := 0, time.Now()
	for ; time.Since(start) < 100*time.Millisecond; syncs++ {
		page[0] = byte(syncs)
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		if syncs == 0 {
			start = time.Now() // the first one also allocates
		}
	}
	return float64(max(syncs-1, 1)) / time.Since(start).Seconds(), nil
}
