package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jobledger/ledger/event"
)

// Process distinguishes w from the other processes of its name; the boot, which identifies it, is in --json.
func Process(w event.Worker) string {
	text := fmt.Sprintf("pid %d on %s", w.PID, OrNone(w.Host))
	if w.Version != "" {
		text += ", version " + w.Version
	}
	return text
}

func OrNone(s string) string { return cmp.Or(s, "none") }

func Percent(progress float64) string { return fmt.Sprintf("%.0f%% done", 100*progress) }

// Count is a number with its noun: "1 byte", "2 bytes".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Newest is how many of so many jobs a search has looked at: "the newest 20 of 100 jobs".
func Newest(looked, jobs int64) string {
	return fmt.Sprintf("the newest %d of %s", looked, Count(jobs, "job"))
}

func SortedNames(tags map[string]string) []string {
	return slices.Sorted(maps.Keys(tags))
}

// TagPairs are tags as NAME=VALUE, by their names.
func TagPairs(tags map[string]string) []string {
	return Of(SortedNames(tags), func(name string) string { return name + "=" + tags[name] })
}

// KindLabel is the word of e's kind for a listing. A write that was refused is in capitals, to be seen
// without color.
func KindLabel(e event.Event) (label string, s Style) {
	word := e.Kind().String()
	s = StateStyles[word]
	if e.Kind() == event.KindRefused {
		return strings.ToUpper(word), s
	}
	return word, s
}

// StateLabel is the state that e led to, for a listing.
func StateLabel(e event.Event) (label string, s Style) {
	if e.To == 0 {
		return Pad("", 11, false), Plain
	}
	return Pad("→ "+e.To.String(), 11, false), StateStyles[e.To.String()]
}
