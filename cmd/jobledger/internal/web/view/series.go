package view

import (
	"context"
	"math"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/report"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/attempts"
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

// ReadSeries reads the series of the queue of s; "": of all queues.
func ReadSeries(ctx context.Context, tx *ledger.Tx, s Span) (*Series, error) {
	step := max(time.Second, (s.length() / SeriesSteps).Round(time.Second))
	n := int(math.Ceil(float64(s.length()) / float64(step)))
	out := &Series{From: s.From.At, Step: step.Seconds(), Queued: make([]int64, n), Held: make([]int64, n),
		Succeeded: make([]int64, n), Failed: make([]int64, n), Lost: make([]int64, n), RunP50: make([]float64, n),
		RunP99: make([]float64, n)}
	if s.To.Pos == 0 {
		return out, nil
	}
	index := func(t time.Time) int { return min(max(int(t.Sub(s.From.At)/step), 0), n-1) }
	claims, err := attempts.List(ctx, tx, attempts.Filter{From: s.From, To: s.To, Queue: s.Queue})
	if err != nil {
		return nil, err
	}
	runs := make([][]float64, n)
	for _, a := range claims {
		if a.Outcome == 0 || a.EndedAt.After(s.To.At) {
			continue
		}
		i := index(a.EndedAt)
		runs[i] = append(runs[i], a.EndedAt.Sub(a.ClaimedAt).Seconds())
		switch a.Outcome {
		case event.KindSucceeded:
			out.Succeeded[i]++
		case event.KindFailed:
			out.Failed[i]++
		case event.KindReclaimed:
			out.Lost[i]++
		}
	}
	for i, run := range runs {
		if len(run) > 0 {
			slices.Sort(run)
			out.RunP50[i], out.RunP99[i] = run[len(run)/2], run[len(run)*99/100]
		}
	}
	depths, err := report.Depth(ctx, tx, report.Window{After: s.From.Pos, Until: s.To.Pos, Now: s.To.At,
		End: s.To.At, Queue: s.Queue, Every: step, Steps: s.From.At})
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(depths); {
		at := depths[i].Minute
		var queued, held int64
		for ; i < len(depths) && depths[i].Minute.Equal(at); i++ {
			queued, held = queued+depths[i].Queued, held+depths[i].Held
		}
		out.Queued[index(at)], out.Held[index(at)] = queued, held
	}
	return out, nil
}
