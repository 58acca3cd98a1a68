package frame

import (
	"cmp"
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/query"
)

// DepthChart is how many jobs are ready, for later and held.
func DepthChart(n *query.Course, zone *time.Location) *chart.Chart {
	return chart.New("Depth", n.From, StepOf(n), zone, "",
		chart.Of("ready", chart.Floats(n.Ready), chart.Stacked),
		chart.Of("later", chart.Floats(n.Later), chart.Stacked),
		chart.Of("held", chart.Floats(n.Held), chart.Stacked))
}

// AttemptsChart is how many attempts ended in each step.
func AttemptsChart(n *query.Course, zone *time.Location) *chart.Chart {
	return chart.New("Attempts every "+words.Duration(StepOf(n)), n.From, StepOf(n), zone, "",
		chart.Of("succeeded", chart.Floats(n.Succeeded), chart.Area),
		chart.Of("failed", chart.Floats(n.Failed), chart.Down),
		chart.Of("lost", chart.Floats(n.Lost), chart.Down))
}

func StepOf(n *query.Course) time.Duration { return time.Duration(n.Step * float64(time.Second)) }

// ShortWait is d in its two largest units, or with two digits.
func ShortWait(d time.Duration) string {
	if d >= time.Minute {
		return words.Roughly(d)
	}
	return cmp.Or(shortSeconds(d), "0s")
}

// shortSeconds is d, which is less than a minute, with two digits.
func shortSeconds(d time.Duration) string {
	unit, name := time.Second, "s"
	if d < time.Second {
		unit, name = time.Millisecond, "ms"
	}
	v := float64(d) / float64(unit)
	if v < 9.95 {
		return fmt.Sprintf("%.1f%s", v, name)
	}
	return fmt.Sprintf("%.0f%s", v, name)
}
