package bench

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/words"
)

// Table is results for people.
func Table(results []Result) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "PHASE"}}}
	for _, title := range []string{"WORKERS", "JOBS", "SECONDS", "JOBS/S", "P50 MS", "P99 MS", "MAX MS",
		"BYTES/JOB", "SYNCS/JOB", "RUN", "LEFT", "DISK SYNCS/S"} {
		t.Columns = append(t.Columns, words.Column{Title: title, Right: true})
	}
	for _, r := range results {
		workers := fmt.Sprint(r.Workers)
		if r.Procs > 1 {
			workers = fmt.Sprintf("%d × %d", r.Procs, r.Workers)
		}
		t.Add(r.Phase, workers, fmt.Sprint(r.Jobs), fmt.Sprintf("%.2f", r.Seconds), orDash("%.0f", r.JobsPerS),
			orDash("%.2f", r.P50), orDash("%.2f", r.P99), orDash("%.2f", r.Max), orDash("%.0f", r.BytesPerJob),
			orDash("%.3f", r.SyncsPerJob), orDash("%d", r.Executions), orDash("%d", r.Left),
			fmt.Sprintf("%.0f", r.DiskSyncs))
	}
	return t
}

func orDash[T any](format string, v *T) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v)
}
