package state

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/status"
)

// Gone says how the workers of a queue went; empty if there were none.
func Gone(s status.Service, now time.Time) string {
	if len(s.Gone) == 0 {
		return ""
	}
	last := s.Gone[0]
	at := fmt.Sprintf("%s (%s)", words.Time(last.SeenAt.In(now.Location())), words.Age(last.SeenAt, now))
	if last.State == status.Stopped {
		return "its workers stopped, the last at " + at
	}
	return "its workers went silent, the last at " + at
}

// WorkArgs is the command 'work' that starts a worker for jobs of this queue, version and labels.
func WorkArgs(queue, version string, requires []string) string {
	text := "work -q " + queue
	if version != "" {
		text += " --version " + words.QuoteShell(version)
	}
	for _, label := range requires {
		text += " --capability " + words.QuoteShell(label)
	}
	return text
}
