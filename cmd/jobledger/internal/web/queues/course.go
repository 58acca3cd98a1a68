package queues

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/status"
)

// Course is how a queue goes, for people.
type Course struct {
	Name, Href                  string
	Paused                      bool
	Ready, Oldest, Later, Held  string
	OK, Failed, P50, P99, Clear string
	Spark                       *chart.Spark
}

// NewCourse is how q goes at now; without a pace only how many jobs it has.
func NewCourse(q status.Queue, p *view.Pace, now time.Time) Course {
	v := Course{Name: q.Name, Paused: q.Paused, Ready: fmt.Sprint(q.Ready), Oldest: "-",
		Later: fmt.Sprint(q.Scheduled), Held: fmt.Sprint(q.Jobs[event.ClaimedState] + q.Jobs[event.Running])}
	if !q.OldestReady.IsZero() {
		v.Oldest = words.Roughly(now.Sub(q.OldestReady))
	}
	if p == nil {
		return v
	}
	v.OK, v.Failed = Rate(p.PerMinute(p.Succeeded)), Rate(p.PerMinute(p.Failed))
	v.P50, v.P99 = quantile(p.Waits.P50, p.Waits), quantile(p.Waits.P99, p.Waits)
	v.Clear = clearIn(q, p)
	most, at, failed := int64(0), 0, int64(0)
	for i, n := range p.Depth {
		if n > most {
			most, at = n, i
		}
		failed += p.Fails[i]
	}
	about := "never a job was queued"
	if most > 0 {
		about = fmt.Sprintf("up to %s queued, from %s on", words.Count(most, "job"),
			p.StepAt(at).In(now.Location()).Format("15:04"))
	}
	v.Spark = chart.NewSpark(q.Name+" since "+p.From.In(now.Location()).Format("15:04"),
		about+"; "+words.Count(failed, "failure"), p.Depth, p.Fails)
	return v
}

// clearIn says when the jobs of q that are ready are claimed, at the rate of the last ten minutes.
func clearIn(q status.Queue, p *view.Pace) string {
	if q.Ready == 0 {
		return "-"
	}
	if q.Paused {
		return "paused"
	}
	d, ok := p.ClearIn(q.Ready)
	if !ok {
		return "never, at this rate"
	}
	return words.Roughly(d)
}

// Rate is how often a minute something happens.
func Rate(n float64) string { return fmt.Sprintf("%.1f", n) }

// quantile is d of q with two digits.
func quantile(d time.Duration, q view.Quantiles) string {
	switch {
	case q.Count == 0:
		return "-"
	case d == view.Unbounded:
		return "over " + words.Roughly(view.MinuteEnds[len(view.MinuteEnds)-1])
	}
	return frame.ShortWait(d)
}
