package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/audit"
)

const (
	benchPace     = 5 * time.Millisecond   // between two jobs of the latency phase, so that the worker is idle again
	benchIdle     = 300 * time.Millisecond // until its workers have nothing to do
	benchPatience = time.Minute            // for the last of its jobs
	benchGrowth   = 10                     // finished jobs for each that is measured in the growth phase
)

// benchPlan is one run to be done.
type benchPlan struct {
	phase                         string
	workers, procs, jobs, payload int
	sync                          string
}

// benchRun is one run under way.
type benchRun struct {
	benchPlan
	db      string
	service *commands.Service
	result  *benchResult
}

// measure runs the plan on a fresh ledger in a folder below root. A result with Seconds stands even with an error, which
// then says what is wrong with it.
func (plan benchPlan) measure(ctx context.Context, root string) (r benchResult, err error) {
	r = benchResult{Phase: plan.phase, Engine: programName, Workers: plan.workers, Procs: plan.procs, Jobs: plan.jobs,
		PayloadBytes: plan.payload, Sync: plan.sync}
	folder, err := os.MkdirTemp(root, plan.phase+"-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	if folder, err = filepath.Abs(folder); err != nil {
		return r, err
	}
	if r.fsyncs, err = fsyncRate(folder); err != nil {
		return r, fmt.Errorf("measure the disk: %w", err)
	}
	db := "sqlite:" + filepath.Join(folder, "bench.db") + "?sync=" + plan.sync
	store, err := ledger.Open(ctx, db)
	if err != nil {
		return r, err
	}
	defer store.Close()
	b := &benchRun{plan, db, &commands.Service{Store: store}, &r}
	empty, err := b.look(ctx, 0)
	if err != nil {
		return r, err
	}
	wrong := b.phases()[plan.phase](ctx)
	if wrong != nil && r.Seconds == 0 {
		return r, wrong
	}
	full, err := b.look(ctx, 0)
	if err != nil {
		return r, err
	}
	r.BytesPerJob = new(float64(full.bytes-empty.bytes) / float64(full.jobs))
	return r, cmp.Or(wrong, b.check(ctx))
}

func (b *benchRun) phases() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"enqueue": b.enqueue, "batch": b.enqueue, "drain": b.drain, "latency": b.latency, "growth": b.growth, "verify": b.verify,
	}
}

// enqueue measures calls that enqueue.
func (b *benchRun) enqueue(ctx context.Context) error {
	counts, start, err := b.everywhere(ctx, b.phase, b.jobs, nil)
	if err != nil {
		return err
	}
	b.result.settle(counts.Ended.Sub(start), b.jobs)
	b.result.times(counts.Took)
	after, err := b.look(ctx, 0)
	if err == nil && after.left != int64(b.jobs) {
		return exitf(exitDiscrepancy, "%d jobs were acknowledged, %d are there", b.jobs, after.left)
	}
	b.result.syncs(b.sync, after, b.jobs)
	return err
}

// drain measures jobs that wait already.
func (b *benchRun) drain(ctx context.Context) error {
	if err := b.fill(ctx, b.jobs); err != nil {
		return err
	}
	before, err := b.look(ctx, 0)
	if err != nil {
		return err
	}
	counts, start, err := b.everywhere(ctx, "drain", b.jobs, nil)
	if err != nil {
		return err
	}
	after, err := b.look(ctx, before.tail)
	if err != nil {
		return err
	}
	b.result.settle(counts.Ended.Sub(start), b.jobs-int(after.left))
	b.result.times(after.took)
	b.result.syncs(b.sync, after, b.jobs)
	return b.result.count(counts, after)
}

// growth is drain on a ledger that has become long.
func (b *benchRun) growth(ctx context.Context) error {
	past := b.jobs * benchGrowth
	if err := b.finish(ctx, past); err != nil {
		return err
	}
	return b.drain(ctx)
}

// finish makes finished jobs.
func (b *benchRun) finish(ctx context.Context, jobs int) error {
	if err := b.fill(ctx, jobs); err != nil {
		return err
	}
	counts, err := benchTask{Phase: "drain", Jobs: jobs, Workers: 64}.perform(ctx, b.service)
	if err != nil {
		return err
	}
	var past benchResult
	past.Jobs = jobs
	after, err := b.look(ctx, 0)
	if err != nil {
		return err
	}
	return past.count(counts, after)
}

// latency measures the time from the call that enqueues one job to its start by a worker that was idle.
func (b *benchRun) latency(ctx context.Context) error {
	counts, start, err := b.everywhere(ctx, "latency", b.jobs, func() error {
		pause(ctx, benchIdle)
		one := benchTask{Payload: b.payload}
		for n := range b.jobs {
			if _, err := one.send(ctx, b.service, n, n+1); err != nil {
				return err
			}
			pause(ctx, benchPace)
		}
		for until := time.Now().Add(benchPatience); ; pause(ctx, benchPace) {
			if at, err := b.look(ctx, -1); err != nil || at.left == 0 || time.Now().After(until) {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	after, err := b.look(ctx, 0)
	if err != nil {
		return err
	}
	b.result.settle(counts.Ended.Sub(start), 0)
	b.result.times(counts.Took)
	return b.result.count(counts, after)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// verify measures the check of a whole ledger.
func (b *benchRun) verify(ctx context.Context) error {
	if err := b.finish(ctx, b.jobs); err != nil {
		return err
	}
	start := time.Now()
	if err := b.check(ctx); err != nil {
		return err
	}
	b.result.settle(time.Since(start), b.jobs)
	return nil
}

// fill enqueues jobs that nobody works on yet.
func (b *benchRun) fill(ctx context.Context, jobs int) error {
	_, err := benchTask{To: jobs, Workers: 1, Payload: b.payload}.enqueue(ctx, b.service, benchBatch)
	return err
}

// everywhere does a task in all processes of the run and returns what they counted, and when they began. during, if not
// nil, happens meanwhile and then ends them.
func (b *benchRun) everywhere(ctx context.Context, phase string, jobs int, during func() error) (all benchCounts, start time.Time, err error) {
	var processes []*benchProcess
	for i := range b.procs {
		t := benchTask{DB: b.db, Phase: phase, From: jobs * i / b.procs, To: jobs * (i + 1) / b.procs, Jobs: jobs,
			Workers: b.workers, Payload: b.payload}
		process := t.here(ctx, b.service)
		if b.procs > 1 {
			var startErr error
			if process, startErr = t.elsewhere(ctx); startErr != nil {
				err = startErr
				break
			}
		}
		processes = append(processes, process)
	}
	start = time.Now()
	begun := 0
	for ; err == nil && begun < len(processes); begun++ {
		err = processes[begun].begin()
	}
	if err == nil && during != nil {
		err = during()
	}
	for i, process := range processes {
		if err != nil || during != nil {
			process.stop()
		}
		if i >= begun && b.procs == 1 {
			continue // it has not begun, and nothing waits
		}
		counts, endErr := process.end()
		if err == nil {
			err = endErr
		}
		all.add(counts)
	}
	return all, start, err
}

// benchLook is what a ledger looks like from outside.
type benchLook struct {
	tail, bytes int64
	jobs, left  int64           // all; not finished
	commits     int             // with events behind a pos
	took        []time.Duration // from a claim to its success, behind that pos
}

// look counts. With after negative it leaves out the events.
func (b *benchRun) look(ctx context.Context, after int64) (l benchLook, err error) {
	err = b.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		l = benchLook{}
		if l.tail, err = tx.Tail(ctx); err != nil {
			return err
		}
		queues, err := projection.Status(ctx, tx, tx.Now())
		if err != nil {
			return err
		}
		for _, q := range queues {
			for state, n := range q.Jobs {
				l.jobs += n
				if state == ledger.Queued || state.Held() {
					l.left += n
				}
			}
		}
		if after < 0 {
			return nil
		}
		if l.bytes, err = bytesUsed(ctx, tx); err != nil {
			return err
		}
		return l.readEvents(ctx, tx, after)
	})
	return l, err
}

const selectBytesUsed = `SELECT (p.page_count - f.freelist_count) * s.page_size
	FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`

// bytesUsed is the size of what the file holds, without free pages.
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

// readEvents takes the transactions apart by their time: each has one reading of the clock.
func (l *benchLook) readEvents(ctx context.Context, tx *ledger.Tx, after int64) error {
	var last time.Time
	claimed := make(map[ledger.JobID]time.Time)
	for e, err := range tx.Events(ctx, ledger.Filter{After: after}) {
		if err != nil {
			return err
		}
		if !e.At.Equal(last) {
			last = e.At
			l.commits++
		}
		switch e.To {
		case ledger.ClaimedState:
			claimed[e.Job] = e.At
		case ledger.SucceededState:
			l.took = append(l.took, e.At.Sub(claimed[e.Job]))
			delete(claimed, e.Job)
		}
	}
	return nil
}

// check is verify.
func (b *benchRun) check(ctx context.Context) error {
	var v audit.Verified
	err := b.service.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		v, err = audit.Verify(ctx, tx, nil)
		return err
	})
	if err == nil && len(v.Findings) > 0 {
		err = discrepancy(v)
	}
	return err
}

// settle fills in how long so many jobs took; 0 where they were paced.
func (r *benchResult) settle(took time.Duration, jobs int) {
	r.Seconds = took.Seconds()
	if jobs > 0 {
		r.JobsPerS = new(float64(jobs) / r.Seconds)
	}
}

func (r *benchResult) syncs(sync string, l benchLook, jobs int) {
	if sync == "full" {
		r.SyncsPerJob = new(float64(l.commits) / float64(jobs))
	}
}

// times fills in the quantiles of d.
func (r *benchResult) times(d []time.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(q float64) *float64 { return new(d[int(q*float64(len(d)-1))].Seconds() * 1000) }
	r.P50, r.P99, r.Max = at(0.50), at(0.99), at(1)
}

// count fills in the executions, of which there must be one for each job.
func (r *benchResult) count(c benchCounts, l benchLook) error {
	all, twice := c.executions()
	r.Executions, r.Left = &all, new(int(l.left))
	if all != r.Jobs || twice > 0 || l.left > 0 {
		return exitf(exitDiscrepancy, "%d jobs were run %d times, %d of them more than once, and %d are left", r.Jobs, all, twice, l.left)
	}
	return nil
}

// fsyncRate returns how many times a second the disk of folder makes an overwritten page durable, measured for a short
// while: what one durable commit after the other cannot exceed.
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
