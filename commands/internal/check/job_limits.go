package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands/argv"
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

// Reschedule finds a time or a priority that no job can be given; nil is neither.
func Reschedule(runAt *time.Time, priority *int) *Problem {
	if runAt != nil && runAt.UTC().Year() > 9999 {
		return &Problem{"run_at", event.FormatTime(*runAt), "up to the year 9999"}
	}
	if priority == nil {
		return nil
	}
	return Priority(*priority)
}

// Progress finds a progress that is not allowed; nil is none.
func Progress(p *float64) *Problem {
	if p != nil && !(*p >= 0 && *p <= 1) {
		return &Problem{"progress", fmt.Sprint(*p), "0 to 1"}
	}
	return nil
}

// Requires finds too many labels, or one that is not valid.
func Requires(list []string) *Problem {
	if len(list) > MaxLabels {
		return &Problem{"requires", fmt.Sprintf("of %d labels", len(list)), "up to 16 labels"}
	}
	return Labels("requires", list)
}

// Reserved finds the first of list that only the program itself gives to jobs and workers.
func Reserved(field string, list []string) *Problem {
	return first(list, func(label string) *Problem {
		if !strings.HasPrefix(label, event.LabelReserved) {
			return nil
		}
		return &Problem{field, fmt.Sprintf("%.80q", label), "labels that do not begin with " + event.LabelReserved +
			": the program sets those itself"}
	})
}

// Form finds a payload that does not have the form that it claims.
func Form(form string, payload []byte) *Problem {
	switch form {
	case "":
		return nil
	case event.FormArgv:
		if err := argv.Check(payload); err != nil {
			return &Problem{"payload", err.Error(), "a command as package argv writes it"}
		}
		return nil
	}
	return &Problem{"form", fmt.Sprintf("%.80q", form), event.FormArgv}
}

// FormOf finds a job that its queue does not take: where jobs carry their commands all do, and nowhere else.
func FormOf(queue, form string, commands bool) *Problem {
	switch {
	case commands && form == "":
		return &Problem{"queue", fmt.Sprintf("%q", queue),
			"a queue for jobs without a command; the jobs of this one carry theirs: see 'jobledger run'"}
	case !commands && form != "":
		return &Problem{"queue", fmt.Sprintf("%q", queue), "a queue whose jobs carry their commands; " +
			"'jobledger queue set -q " + queue + " --commands' makes this one such a queue"}
	}
	return nil
}

// Labelled returns the labels of a job of that form which asks for these.
func Labelled(requires []string, form string) []string {
	if form != event.FormArgv || slices.Contains(requires, event.LabelArgv) {
		return requires
	}
	return append(slices.Clone(requires), event.LabelArgv)
}

// Tokens finds a problem unless tokens are that many different ULIDs.
func Tokens(tokens []string, limit int) *Problem {
	if tokens != nil && len(tokens) != limit {
		return &Problem{"tokens", fmt.Sprintf("of %d", len(tokens)), "one for each job of the limit"}
	}
	seen := make(map[string]bool, len(tokens))
	return first(tokens, func(token string) *Problem {
		id, err := ulid.ParseStrict(token)
		if err != nil || id.String() != token {
			return &Problem{"tokens", fmt.Sprintf("%.80q", token), "ULIDs in capitals"}
		}
		if seen[token] {
			return &Problem{"tokens", fmt.Sprintf("%q twice", token), "each token once"}
		}
		seen[token] = true
		return nil
	})
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
