// Package lane has the texts of lanes.
//
// A lane is the tuple (queue, priority, version, requires) of a queued job as one text. Jobs of one lane fit
// the same workers, and within a queue lanes sort in claiming order, so a claim reads the head of each
// lane that fits and never a job that does not fit.
//
// The parts are separated by a space, which occurs in none of them (limits are checked before a job is
// enqueued), and which sorts before every character that may follow.
//
// Held by TestClaimSearchEqualsSortedFilter, TestClaimMergesManyLanes and TestAgeingIsOfOneQueue of
// package commands.
package lane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobledger/ledger"
)

// Text returns the lane of jobs without a group. Labels may be in any order and occur twice.
func Text(queue string, priority int, version string, requires []string) string {
	text := queue + " " + Rank(priority) + " " + version
	if len(requires) > 0 {
		labels := slices.Sorted(slices.Values(requires))
		text += " " + strings.Join(slices.Compact(labels), " ")
	}
	return text
}

// Rank returns three digits that sort higher priorities first.
func Rank(priority int) string { return fmt.Sprintf("%03d", 100-priority) }

// Parse returns the parts of a lane; ledger.ErrDamaged if text is none.
func Parse(text string) (priority int, version string, requires []string, err error) {
	parts := strings.Split(text, " ")
	if len(parts) < 3 {
		return 0, "", nil, fmt.Errorf("%w: lane %q", ledger.ErrDamaged, text)
	}
	rank, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, "", nil, fmt.Errorf("%w: lane %q", ledger.ErrDamaged, text)
	}
	return 100 - rank, parts[2], parts[3:], nil
}

// Bounds returns the range of the lanes of a queue: from, inclusive, and before, exclusive.
func Bounds(queue string) (from, before string) { return queue + " ", queue + "!" }
