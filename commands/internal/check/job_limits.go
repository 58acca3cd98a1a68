package check

import (
	"fmt"
	"slices"
	"time"

	"jobledger/ledger/event"
)

// Attempts finds a number of attempts that is not allowed. It permits 0, which means the default.
func Attempts(n int) *Problem {
	if n < 0 || n > MaxMaxAttempts {
		return &Problem{"max_attempts", fmt.Sprint(n), "1 to 1000000"}
	}
	return nil
}

// RunAt finds a time at which no job can be to run. It permits the zero time, which means now.
func RunAt(at time.Time) *Problem {
	if !at.IsZero() && (at.UTC().Year() < 1971 || at.UTC().Year() > 9999) {
		return &Problem{"run_at", event.FormatTime(at), "the years 1971 to 9999"}
	}
	return nil
}

// Requires finds more labels than a worker may be asked for, or one that is none.
func Requires(list []string) *Problem {
	if len(list) > MaxLabels {
		return &Problem{"requires", fmt.Sprintf("of %d labels", len(list)), "up to 16 labels"}
	}
	return Labels("requires", list)
}

// What is done about a job whose key another job has, as commands has it.
const (
	IgnoreDuplicate  = "ignore"
	ReplaceDuplicate = "replace"
	RefreshDuplicate = "refresh"
)

// Unique finds what is wrong with how long key is a job's own, and with what is done about duplicates.
func Unique(key, while, onDuplicate string) *Problem {
	switch {
	case while != "" && while != event.WhileQueued && while != event.WhileUnfinished:
		return &Problem{"unique_while", fmt.Sprintf("%.80q", while), "queued or unfinished"}
	case while != "" && key == "":
		return &Problem{"unique_while", fmt.Sprintf("%q", while), "only with a key"}
	case !slices.Contains([]string{"", IgnoreDuplicate, ReplaceDuplicate, RefreshDuplicate}, onDuplicate):
		return &Problem{"on_duplicate", fmt.Sprintf("%.80q", onDuplicate), "ignore, replace or refresh"}
	case onDuplicate != "" && while == "":
		return &Problem{"on_duplicate", fmt.Sprintf("%q", onDuplicate), "only with unique_while"}
	}
	return nil
}

// Cost finds what no attempt can have used.
func Cost(c event.Cost) *Problem {
	for _, d := range []struct {
		field string
		time.Duration
	}{{"cpu_user", c.CPUUser}, {"cpu_system", c.CPUSystem}} {
		if d.Duration < 0 || d.Duration > time.Duration(1<<62) {
			return &Problem{d.field, d.String(), "seconds, 0 or more"}
		}
	}
	if c.MaxRSS < 0 || c.MaxRSS > 1<<53 {
		return &Problem{"max_rss", fmt.Sprint(c.MaxRSS), "bytes, 0 or more"}
	}
	return nil
}
