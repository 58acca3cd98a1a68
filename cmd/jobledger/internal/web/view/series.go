package view

import (
	"context"
	"math"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/attempts"
	"jobledger/projection/status"
)

// SeriesSteps is how many points [Series] have, unless the steps would be shorter than a second.
const SeriesSteps = 120

// Series are what a queue did within a window, step by step.
type Series struct {
	From      time.Time `json:"from"`
	Step      float64   `json:"step"`   // seconds
	Queued    []int64   `json:"queued"` // at the end of each step
	Held      []int64   `json:"held"`
	Succeeded []int64   `json:"succeeded"` // attempts that ended so within the step
	Failed    []int64   `json:"failed"`
	Lost      []int64   `json:"lost"`
	RunP50    []float64 `json:"run_p50"` // seconds from claim to end, of the attempts that ended within the step
	RunP99    []float64 `json:"run_p99"`
}

// ReadSeries reads the series of the queue of s; "": of all queues. It reads each event of the window once.
func ReadSeries(ctx context.Context, tx *ledger.Tx, s Span) (*Series, error) {
	step := max(time.Second, (s.length() / SeriesSteps).Round(time.Second))
	n := int(math.Ceil(float64(s.length()) / float64(step)))
	out := &Series{From: s.From.At, Step: step.Seconds(), Queued: make([]int64, n), Held: make([]int64, n),
		Succeeded: make([]int64, n), Failed: make([]int64, n), Lost: make([]int64, n), RunP50: make([]float64, n),
		RunP99: make([]float64, n)}
	if s.To.Pos == 0 {
		return out, nil
	}
	begun, err := out.begin(ctx, tx, s)
	if err != nil {
		return nil, err
	}
	runs := make([][]float64, n)
	err = eachTransition(ctx, tx, s, func(m transition) {
		i := min(max(int(m.at.Sub(s.From.At)/step), 0), n-1)
		out.Queued[i] += m.queued()
		out.Held[i] += m.held()
		switch m.kind {
		case event.KindClaimed:
			begun[m.job] = m.at
		case event.KindSucceeded:
			out.Succeeded[i]++
		case event.KindFailed:
			out.Failed[i]++
		case event.KindReclaimed:
			out.Lost[i]++
		}
		if began, known := begun[m.job]; known && m.from.Held() && !m.to.Held() {
			runs[i] = append(runs[i], m.at.Sub(began).Seconds())
			delete(begun, m.job)
		}
	})
	if err != nil {
		return nil, err
	}
	for i, run := range runs {
		if i > 0 {
			out.Queued[i] += out.Queued[i-1]
			out.Held[i] += out.Held[i-1]
		}
		if len(run) > 0 {
			slices.Sort(run)
			out.RunP50[i], out.RunP99[i] = run[len(run)/2], run[len(run)*99/100]
		}
	}
	return out, nil
}

// begin adds the depth at the beginning of s to the first step, and returns when the claims that were live
// then had begun, by job.
func (out *Series) begin(ctx context.Context, tx *ledger.Tx, s Span) (map[int64]time.Time, error) {
	begun := make(map[int64]time.Time)
	if s.From.Pos == 0 {
		return begun, nil
	}
	queues, err := status.QueuesAsOf(ctx, tx, s.From)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		if s.Queue == "" || s.Queue == q.Name {
			out.Queued[0] += q.Jobs[event.Queued]
			out.Held[0] += q.Jobs[event.ClaimedState] + q.Jobs[event.Running]
		}
	}
	live, err := attempts.List(ctx, tx, attempts.Filter{From: s.From, To: s.From, Queue: s.Queue})
	for _, a := range live {
		begun[a.N] = a.ClaimedAt
	}
	return begun, err
}
