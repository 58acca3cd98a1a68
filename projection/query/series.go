package query

import (
	"context"
	"math"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
	"jobledger/projection/internal/queues"
)

// Limits of [Series].
const (
	SeriesSteps    = 120    // how many points it has by default, unless its steps would be shorter than 1 s
	MaxSeriesSteps = 10_000 // how many it has at most
)

// Series asks what a queue, or all, did within a window, step by step.
type Series struct {
	Span
	Step time.Duration // 0: such that there are about SeriesSteps
}

// Course is the answer to [Series], in columns. An event belongs to the step in which it happened.
type Course struct {
	From      time.Time `json:"from"`
	Step      float64   `json:"step"`   // seconds
	Queued    []int64   `json:"queued"` // at the end of each step; ready or later
	Ready     []int64   `json:"ready"`
	Later     []int64   `json:"later"`
	Held      []int64   `json:"held"`
	Succeeded []int64   `json:"succeeded"` // attempts that ended like this within the step
	Failed    []int64   `json:"failed"`
	Lost      []int64   `json:"lost"`
	Ended     []int64   `json:"ended"`   // attempts that ended within the step in any way
	RunP50    []float64 `json:"run_p50"` // their seconds from claim to end; 0: none ended
	RunP99    []float64 `json:"run_p99"`
	Claimed   []int64   `json:"claimed"`  // claims within the step
	WaitP50   []float64 `json:"wait_p50"` // their seconds from when the job was ready; 0: there was none
	WaitP90   []float64 `json:"wait_p90"`
	WaitP99   []float64 `json:"wait_p99"`
	Wait      Wait      `json:"-"` // of the whole window
}

// Metrics are the names of the columns of [Course], as in JSON.
var Metrics = []string{"queued", "ready", "later", "held", "succeeded", "failed", "lost", "ended", "run_p50",
	"run_p99", "claimed", "wait_p50", "wait_p90", "wait_p99"}

// Length is how long the window is, at least a millisecond.
func (s Span) Length() time.Duration { return max(s.To.At.Sub(s.From.At), time.Millisecond) }

// Read returns the series. It reads the transitions of the window once, and the jobs that were open when it
// began. It returns an [*InputError] if there would be more than MaxSeriesSteps steps.
func (q Series) Read(ctx context.Context, tx *ledger.Tx) (*Course, error) {
	step := q.Step
	if step == 0 {
		step = max(time.Second, (q.Length() / SeriesSteps).Round(time.Second))
	}
	if q.Length() > MaxSeriesSteps*step {
		least := q.Length()/MaxSeriesSteps + time.Second - 1
		return nil, badInput("step", "at least %s for this window", least.Truncate(time.Second))
	}
	n := int(math.Ceil(float64(q.Length()) / float64(step)))
	counts := func() []int64 { return make([]int64, n) }
	shares := func() []float64 { return make([]float64, n) }
	out := &Course{From: q.From.At, Step: step.Seconds(), Queued: counts(), Ready: counts(), Later: counts(),
		Held: counts(), Succeeded: counts(), Failed: counts(), Lost: counts(), Ended: counts(),
		RunP50: shares(), RunP99: shares(), Claimed: counts(), WaitP50: shares(), WaitP90: shares(),
		WaitP99: shares()}
	if q.To.Pos == 0 {
		return out, nil
	}
	runs, waits := make([][]int64, n), make([][]int64, n)
	if err := q.follow(ctx, tx, step, out, runs, waits); err != nil {
		return nil, err
	}
	out.Wait = waitOf(q.Queue, slices.Concat(waits...))
	for i := range n {
		run, wait := waitOf("", runs[i]), waitOf("", waits[i])
		out.RunP50[i], out.RunP99[i] = run.P50.Seconds(), run.P99.Seconds()
		out.WaitP50[i], out.WaitP90[i] = wait.P50.Seconds(), wait.P90.Seconds()
		out.WaitP99[i] = wait.P99.Seconds()
	}
	return out, nil
}

// follow adds up what happened, step by step. It puts how long attempts ran into runs, and how long the
// claimed jobs had waited into waits.
func (q Series) follow(ctx context.Context, tx *ledger.Tx, step time.Duration, out *Course,
	runs, waits [][]int64) error {
	depth := queues.NewDepth(q.Queue, true)
	if err := depth.Begin(ctx, tx, q.From); err != nil {
		return err
	}
	at := 0 // the step that is under way
	end := func(i int) int64 {
		return event.Micros(q.From.At.Add(min(time.Duration(i+1)*step, q.Length())))
	}
	endStep := func() {
		depth.Ripen(end(at))
		now := depth.Rows(time.Time{})[0]
		out.Ready[at], out.Later[at], out.Held[at], out.Queued[at] = now.Ready, now.Later, now.Held, now.Queued()
		at++
	}
	r := follow.Transitions{Pos: q.From.Pos}
	err := r.Read(ctx, tx, q.To.Pos, func(t *follow.Transition) {
		if q.Queue != "" && t.Queue != q.Queue {
			return
		}
		for at < len(out.Queued)-1 && t.At >= end(at) {
			endStep()
		}
		if t.Kind == event.KindClaimed {
			out.Claimed[at]++
			if t.Wait >= 0 {
				waits[at] = append(waits[at], t.Wait)
			}
		}
		if t.From.Held() && !t.To.Held() {
			out.Ended[at]++
			if t.Run >= 0 {
				runs[at] = append(runs[at], t.Run)
			}
		}
		switch t.Kind {
		case event.KindSucceeded:
			out.Succeeded[at]++
		case event.KindFailed:
			out.Failed[at]++
		case event.KindReclaimed:
			out.Lost[at]++
		}
		depth.Add(t)
	})
	for at < len(out.Queued) && err == nil {
		endStep()
	}
	return err
}
