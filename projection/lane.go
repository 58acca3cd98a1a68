package projection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// A lane is the tuple (queue, priority, version, requires) of a queued job as one text. Jobs of one lane fit
// the same workers, and within a queue lanes sort in claiming order, so a claim reads the head of each
// lane that fits and never a job that does not fit.
//
// The parts are separated by a space, which occurs in none of them (limits are checked before a job is
// enqueued), and which sorts before every character that may follow.

// laneOf returns the lane of j; "" unless it is queued.
func laneOf(j Job) string {
	if j.State != event.Queued {
		return ""
	}
	text := j.Queue + " " + rank(j.Priority) + " " + j.Version
	if len(j.Requires) > 0 {
		labels := slices.Sorted(slices.Values(j.Requires))
		text += " " + strings.Join(slices.Compact(labels), " ")
	}
	return text
}

// rank returns three digits that sort higher priorities first.
func rank(priority int) string { return fmt.Sprintf("%03d", 100-priority) }

// parseLane returns the parts of a lane; ledger.ErrDamaged if text is none.
func parseLane(text string) (priority int, version string, requires []string, err error) {
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

// laneBounds returns the range of the lanes of a queue: from, inclusive, and before, exclusive.
func laneBounds(queue string) (from, before string) { return queue + " ", queue + "!" }

// Fits reports whether a worker of this version and with these capabilities may take j, and if not, why not.
func Fits(j Job, version string, capabilities []string) (bool, string) {
	if j.Version != "" && j.Version != version {
		return false, fmt.Sprintf("it asks for version %q", j.Version)
	}
	for _, label := range j.Requires {
		if !slices.Contains(capabilities, label) {
			return false, fmt.Sprintf("it requires the capability %q", label)
		}
	}
	return true, ""
}
