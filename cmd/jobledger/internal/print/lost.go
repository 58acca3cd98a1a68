package print

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

// SeenAtWork describes a worker that seems to be alive at now.
func SeenAtWork(w status.Worker, now time.Time) string {
	text := fmt.Sprintf("%s (%s) was seen %s", w.Name, words.Process(w.Worker), words.AgeOrOn(w.SeenAt, now))
	if len(w.Jobs) > 0 {
		text += fmt.Sprintf(" and holds %s until %s",
			words.Count(int64(len(w.Jobs)), "job"), words.Time(w.Jobs[0].LeaseUntil.In(now.Location())))
	}
	return text
}

// Lost says what a ledger has that the other one lacks, and what that means for its jobs. Times are given in
// zone.
func Lost(l audit.Lost, other string, zone *time.Location) string {
	text := fmt.Sprintf("%s since %s %s not in %s",
		words.Count(l.Events, "event"), words.Time(l.Since.In(zone)), words.Plural(l.Events, "is", "are"), other)
	var jobs []string
	if l.Enqueued > 0 {
		jobs = append(jobs, words.Count(l.Enqueued, "job")+" enqueued since")
	}
	if l.Ended > 0 {
		jobs = append(jobs, fmt.Sprintf("the end of %s, which may run again", words.Count(l.Ended, "job")))
	}
	if len(l.Erased) > 0 {
		erased := words.Count(int64(len(l.Erased)), "job")
		jobs = append(jobs, fmt.Sprintf("that the payload of %s was erased, which comes back", erased))
	}
	if len(jobs) > 0 {
		text += ", among them " + strings.Join(jobs, "; ")
	}
	return text
}
