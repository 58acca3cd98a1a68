package print

import (
	"maps"
	"slices"
	"strconv"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/follow"
)

// TallyJobs returns how many jobs there are in all queues.
func TallyJobs(tally follow.Tally) (jobs int64) {
	for _, states := range tally {
		for _, n := range states {
			jobs += n
		}
	}
	return jobs
}

// Tally is a table of how many jobs each queue has in which state.
func Tally(tally follow.Tally) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "QUEUE"}}}
	shown := shownStates(maps.Values(tally))
	for _, state := range shown {
		t.Columns = append(t.Columns, words.Column{Title: state.String(), Right: true})
	}
	for _, queue := range slices.Sorted(maps.Keys(tally)) {
		row := []string{queue}
		for _, state := range shown {
			row = append(row, strconv.FormatInt(tally[queue][state], 10))
		}
		t.Add(row...)
	}
	return t
}

// TallyJSON has the number of jobs by queue and state, for programs.
func TallyJSON(tally follow.Tally) map[string]map[string]int64 {
	counts := make(map[string]map[string]int64)
	for queue, states := range tally {
		counts[queue] = make(map[string]int64)
		for _, state := range shownStates(maps.Values(tally)) {
			counts[queue][state.String()] = states[state]
		}
	}
	return counts
}
