package history

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/web/moves"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// SeriesSteps is how many points [Series] have, unless the steps would be shorter than a second.
const SeriesSteps = 120

// Series are what a queue did within a window, step by step.
type Series struct {
	From      time.Time `json:"from"`
	Step      float64   `json:"step"`   // seconds
	Queued    []int64   `json:"queued"` // at the end of each step; ready or later
	Ready     []int64   `json:"ready"`
	Later     []int64   `json:"later"`
	Held      []int64   `json:"held"`
	Succeeded []int64   `json:"succeeded"` // attempts that ended so within the step
	Failed    []int64   `json:"failed"`
	Lost      []int64   `json:"lost"`
	Ended     []int64   `json:"ended"`   // attempts that ended within the step in any way
	RunP50    []float64 `json:"run_p50"` // their seconds from claim to end; 0: none ended
	RunP99    []float64 `json:"run_p99"`
	Claimed   []int64   `json:"claimed"`  // claims within the step
	WaitP50   []float64 `json:"wait_p50"` // their seconds from when the job was ready; 0: there was none
	WaitP90   []float64 `json:"wait_p90"`
	WaitP99   []float64 `json:"wait_p99"`
}

// Metrics are the names of the numbers of [Series], as in JSON.
var Metrics = []string{"queued", "ready", "later", "held", "succeeded", "failed", "lost", "ended", "run_p50",
	"run_p99", "claimed", "wait_p50", "wait_p90", "wait_p99"}

// MaxSeriesSteps is how many points [Series] have at most.
const MaxSeriesSteps = 10_000

// TooShortError says that the step of a span gives more than MaxSeriesSteps points.
type TooShortError struct{ Least time.Duration } // the shortest step, in whole seconds

func (e *TooShortError) Error() string {
	return fmt.Sprintf("step is at least %s for this window", e.Least)
}

// ReadSeries reads the series of the queue of s; "": of all queues. It reads each event of the window
// once, and the jobs that were open when it began. Errors: *TooShortError.
func ReadSeries(ctx context.Context, tx *ledger.Tx, s Span) (*Series, error) {
	step := max(time.Second, (s.length() / SeriesSteps).Round(time.Second))
	if s.Step > 0 {
		step = s.Step
	}
	if s.length() > MaxSeriesSteps*step {
		least := s.length()/MaxSeriesSteps + time.Second - 1
		return nil, &TooShortError{least.Truncate(time.Second)}
	}
	n := int(math.Ceil(float64(s.length()) / float64(step)))
	counts := func() []int64 { return make([]int64, n) }
	shares := func() []float64 { return make([]float64, n) }
	out := &Series{From: s.From.At, Step: step.Seconds(), Queued: counts(), Ready: counts(), Later: counts(),
		Held: counts(), Succeeded: counts(), Failed: counts(), Lost: counts(), Ended: counts(),
		RunP50: shares(), RunP99: shares(), Claimed: counts(), WaitP50: shares(), WaitP90: shares(),
		WaitP99: shares()}
	if s.To.Pos == 0 {
		return out, nil
	}
	runs := make([][]float64, n)
	err := out.follow(ctx, tx, s, step, runs)
	for i, run := range runs {
		out.RunP50[i], out.RunP99[i] = percentile(run, 50), percentile(run, 99)
	}
	return out, err
}

// percentile returns the value of sorted values below which so many of a hundred are; 0: there are none.
func percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)*percent/100]
}

// follow adds up what happened, step by step. It puts how long attempts ran into runs.
func (out *Series) follow(ctx context.Context, tx *ledger.Tx, s Span, step time.Duration,
	runs [][]float64) error {
	depth := depths{queued: make(map[int64]waiting)}
	if s.From.Pos > 0 {
		open, err := projection.OpenJobsAsOf(ctx, tx, s.From)
		if err != nil {
			return err
		}
		for n, j := range open {
			switch {
			case s.Queue != "" && j.Queue != s.Queue:
			case j.State == event.Queued:
				depth.put(n, event.Micros(j.RunAt), event.Micros(s.From.At))
			case j.State.Held():
				depth.held++
			}
		}
	}
	waits := make([][]float64, len(out.Queued))
	at := 0 // the step that is under way
	end := func(i int) int64 {
		return event.Micros(s.From.At.Add(min(time.Duration(i+1)*step, s.length())))
	}
	endStep := func() {
		depth.ripen(end(at))
		out.Ready[at], out.Later[at], out.Held[at] = depth.ready, depth.later, depth.held
		out.Queued[at] = depth.ready + depth.later
		at++
	}
	all := moves.Reader{Pos: s.From.Pos}
	err := all.Read(ctx, tx, s.To.Pos, func(m *moves.Move) {
		if s.Queue != "" && m.Queue != s.Queue {
			return
		}
		for at < len(out.Queued)-1 && m.At >= end(at) {
			endStep()
		}
		if m.Kind == event.KindClaimed {
			out.Claimed[at]++
			if m.Wait >= 0 {
				waits[at] = append(waits[at], float64(m.Wait)/1e6)
			}
		}
		if m.From.Held() && !m.To.Held() {
			out.Ended[at]++
			if m.Run >= 0 {
				runs[at] = append(runs[at], float64(m.Run)/1e6)
			}
		}
		switch m.Kind {
		case event.KindSucceeded:
			out.Succeeded[at]++
		case event.KindFailed:
			out.Failed[at]++
		case event.KindReclaimed:
			out.Lost[at]++
		}
		if m.From == event.Queued {
			depth.remove(m.N)
		}
		if m.To == event.Queued {
			depth.put(m.N, m.Ready, m.At)
		}
		depth.held += moves.Change(m.From, m.To, event.State.Held)
	})
	if err != nil {
		return err
	}
	for at < len(out.Queued) {
		endStep()
	}
	for i, w := range waits {
		out.WaitP50[i], out.WaitP90[i], out.WaitP99[i] = percentile(w, 50), percentile(w, 90), percentile(w, 99)
	}
	return nil
}

// depths are how many jobs are ready, for later, and held at a moment.
type depths struct {
	ready, later, held int64
	queued             map[int64]waiting // by the job's number
	due                laterJobs
}

type waiting struct {
	at    int64 // when it is ready, in microseconds
	later bool
}

// put adds a queued job that is ready at a moment, as of now.
func (d *depths) put(n, at, now int64) {
	w := waiting{at, at > now}
	d.queued[n] = w
	if !w.later {
		d.ready++
		return
	}
	d.later++
	heap.Push(&d.due, laterJob{at, n})
}

func (d *depths) remove(n int64) {
	w, ok := d.queued[n]
	switch {
	case !ok:
		return
	case w.later:
		d.later--
	default:
		d.ready--
	}
	delete(d.queued, n)
}

// ripen makes ready what is so by now.
func (d *depths) ripen(now int64) {
	for len(d.due) > 0 && d.due[0].at <= now {
		job, _ := heap.Pop(&d.due).(laterJob)
		if w, ok := d.queued[job.n]; ok && w.later && w.at == job.at { // it has not left since
			d.queued[job.n] = waiting{w.at, false}
			d.later, d.ready = d.later-1, d.ready+1
		}
	}
}

// laterJobs is a heap of jobs by when they are ready.
type laterJobs []laterJob

type laterJob struct{ at, n int64 }

func (h laterJobs) Len() int           { return len(h) }
func (h laterJobs) Less(i, j int) bool { return cmp.Less(h[i].at, h[j].at) }
func (h laterJobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laterJobs) Push(x any)        { *h = append(*h, x.(laterJob)) }
func (h *laterJobs) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
