package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/projection/attempts"
)

// AttemptColumns are what a table of claims may show: the name of the column, and what it says.
var AttemptColumns = [][2]string{
	{"no", "the number of the job"},
	{"job", "the id of the job"},
	{"attempt", "which attempt of the job it is"},
	{"what", "what the job is: its tag title, its key, or the beginning of its payload"},
	{"queue", "the queue of the job"},
	{"worker", "the name of the worker"},
	{"host", "the host of the worker"},
	{"pid", "the process of the worker"},
	{"version", "the version of the worker"},
	{"claimed", "when it began"},
	{"ended", "when it ended"},
	{"state", "how it ended, or open"},
	{"elapsed", "how long it lasted, or has lasted"},
	{"exit", "the exit code of its command, or the signal that ended it"},
	{"code", "the error code, or the reason for which it was taken back, released or cancelled"},
	{"cpu", "processor time of its processes"},
	{"cpu_user", "the part of that in their own code"},
	{"cpu_system", "the part in the system on their behalf"},
	{"max_rss", "the most memory that one of its processes had"},
	{"after_max_runtime", "whether it succeeded beyond its max runtime"},
}

// AttemptRow returns the values of a claim in these columns of a [Report]. what is the value of the column of
// that name; an open claim lasts up to now.
func AttemptRow(a attempts.Attempt, columns []string, what string, now time.Time) (row []any) {
	known := func(d time.Duration) time.Duration {
		if d == 0 {
			return -1 // missing
		}
		return d
	}
	ended := a.EndedAt
	if ended.IsZero() {
		ended = now
	}
	var rss any
	if a.Cost.MaxRSS > 0 {
		rss = a.Cost.MaxRSS
	}
	values := map[string]any{"no": a.N, "job": string(a.Job), "attempt": int64(a.Attempt), "what": what,
		"queue": a.Queue, "worker": a.Worker.Name, "host": a.Worker.Host, "pid": int64(a.Worker.PID),
		"version": a.Worker.Version, "claimed": a.ClaimedAt, "ended": a.EndedAt, "state": outcomeOf(a),
		"elapsed": max(0, ended.Sub(a.ClaimedAt)), "exit": exitText(a), "code": a.Code,
		"after_max_runtime": afterMaxRuntime(a), "cpu": known(a.Cost.CPU()),
		"cpu_user": known(a.Cost.CPUUser), "cpu_system": known(a.Cost.CPUSystem),
		"max_rss": rss}
	for _, name := range columns {
		row = append(row, values[name])
	}
	return row
}

// afterMaxRuntime is true where a succeeded beyond its max runtime; otherwise nil.
func afterMaxRuntime(a attempts.Attempt) any {
	if a.AfterMaxRuntime {
		return true
	}
	return nil
}

// ParseAttemptColumns reads the names of columns, with commas between them.
func ParseAttemptColumns(text string) (columns []string, err error) {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !slices.ContainsFunc(AttemptColumns, func(c [2]string) bool { return c[0] == name }) {
			return nil, fmt.Errorf("there is no column %.40q", name)
		}
		columns = append(columns, name)
	}
	return columns, nil
}
