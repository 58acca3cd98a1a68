package main

import (
	"slices"
	"time"
)

// Result is what one run of one cell gave. Times of single operations are null where an engine does not show
// them.
type Result struct {
	Phase        string   `json:"phase"`
	Engine       string   `json:"engine"`
	Round        int      `json:"round"`
	Workers      int      `json:"workers"` // callers or workers of each process
	Procs        int      `json:"procs"`
	Jobs         int      `json:"jobs"`
	PayloadBytes int      `json:"payload_bytes"`
	Sync         string   `json:"sync"`
	Seconds      float64  `json:"seconds"`
	JobsPerS     float64  `json:"jobs_per_s"` // finished jobs only
	P50          *float64 `json:"p50_ms"`     // of a call, a batch, or a claim with its completion
	P99          *float64 `json:"p99_ms"`
	Max          *float64 `json:"max_ms"`
	TxP50        *float64 `json:"tx_p50_ms"`     // commit: of the transaction, from its begin to the end of its commit
	GapMS        *float64 `json:"max_gap_ms"`    // drains: the longest time without an execution in one process
	BytesPerJob  float64  `json:"bytes_per_job"` // without free pages
	Executions   int      `json:"executions"`    // 0 unless a drain
	Duplicates   int      `json:"duplicates"`    // executions beyond a job's first
	// drains: unfinished jobs; else acknowledged jobs that are not there
	Left      int     `json:"left"`
	Errors    int     `json:"errors"`      // operations that failed and were tried again
	Shares    []int   `json:"shares"`      // executions of each process, where there are several
	FsyncPerS float64 `json:"fsync_per_s"` // the disk's own rate, measured before this round
	Failure   string  `json:"failure,omitempty"`
}

// whole says that the run succeeded, and did each job once.
func (r Result) whole() bool { return r.Failure == "" && r.Left == 0 && r.Duplicates == 0 }

// setTimes fills in the quantiles of d.
func (r *Result) setTimes(d []time.Duration) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(q float64) *float64 {
		ms := d[int(q*float64(len(d)-1))].Seconds() * 1000
		return &ms
	}
	r.P50, r.P99, r.Max = at(0.50), at(0.99), at(1)
}

// setCounts fills in what a drain executed.
func (r *Result) setCounts(c counts) {
	r.Executions, r.Duplicates = c.executions()
	r.Errors = int(c.Errs)
	gap := c.Gap.Seconds() * 1000
	r.GapMS = &gap
	r.setTimes(c.Took)
}

// median returns the middle of v, 0 if it is empty.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}
