package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Tally counts what a drain executes, in one process.
type Tally struct {
	runs  []atomic.Int32 // by the job's number
	stray atomic.Int64   // executions of something that was never enqueued
	errs  atomic.Int64
	last  atomic.Int64 // when the latest execution was, in nanoseconds since start
	gap   atomic.Int64 // the longest time between two executions
	start time.Time
	tell  func(n int, at time.Time) // called for each execution, if not nil

	mu   sync.Mutex
	took []time.Duration
}

func newTally(jobs int) *Tally {
	return &Tally{runs: make([]atomic.Int32, jobs), start: time.Now()}
}

// Ran counts one execution of the job with this payload.
func (t *Tally) Ran(payload []byte) {
	a, err := parsePayload(payload)
	if err != nil {
		a.N = -1
	}
	t.RanNumber(a.N)
}

// RanNumber is Ran for engines that hand over decoded payloads.
func (t *Tally) RanNumber(n int) {
	if n < 0 || n >= len(t.runs) {
		t.stray.Add(1)
		return
	}
	t.runs[n].Add(1)
	if t.tell != nil {
		t.tell(n, time.Now())
	}
	now := int64(time.Since(t.start))
	gap := now - t.last.Swap(now)
	for old := t.gap.Load(); gap > old && !t.gap.CompareAndSwap(old, gap); old = t.gap.Load() {
	}
}

// Took records how long one claim, execution and completion took a worker.
func (t *Tally) Took(d time.Duration) {
	t.mu.Lock()
	t.took = append(t.took, d)
	t.mu.Unlock()
}

// Failed counts an operation that the engine refused and that was, or will be, tried again.
func (t *Tally) Failed() { t.errs.Add(1) }

// Logger returns a logger that prints nothing and counts errors.
func (t *Tally) Logger() *slog.Logger { return slog.New(errorCounter{t}) }

// counts is a Tally at rest; it travels between processes.
type counts struct {
	Runs  []int32         `json:"runs"`
	Stray int64           `json:"stray"`
	Errs  int64           `json:"errs"`
	Gap   time.Duration   `json:"gap"`
	Took  []time.Duration `json:"took"`
}

func (t *Tally) counts() counts {
	c := counts{Runs: make([]int32, len(t.runs)), Stray: t.stray.Load(), Errs: t.errs.Load(),
		Gap: time.Duration(t.gap.Load())}
	for i := range t.runs {
		c.Runs[i] = t.runs[i].Load()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Took = slices.Clone(t.took)
	return c
}

func (c *counts) add(d counts) {
	if short := len(d.Runs) - len(c.Runs); short > 0 {
		c.Runs = append(c.Runs, make([]int32, short)...)
	}
	for i, n := range d.Runs {
		c.Runs[i] += n
	}
	c.Stray += d.Stray
	c.Errs += d.Errs
	c.Gap = max(c.Gap, d.Gap)
	c.Took = append(c.Took, d.Took...)
}

// executions returns how often jobs ran, and how many of these were not a job's first time.
func (c counts) executions() (all, duplicates int) {
	for _, n := range c.Runs {
		all += int(n)
		duplicates += max(int(n)-1, 0)
	}
	return all + int(c.Stray), duplicates + int(c.Stray)
}

// errorCounter is a slog handler that only counts.
type errorCounter struct{ t *Tally }

func (h errorCounter) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (h errorCounter) Handle(context.Context, slog.Record) error    { h.t.Failed(); return nil }
func (h errorCounter) WithAttrs([]slog.Attr) slog.Handler           { return h }
func (h errorCounter) WithGroup(string) slog.Handler                { return h }
