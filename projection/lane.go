package projection

import (
	"fmt"
	"slices"

	"jobledger/ledger/event"
	"jobledger/projection/group"
	"jobledger/projection/internal/lane"
)

// LaneOf returns the lane of j, see the package lane; "" unless it is queued.
func LaneOf(j Job) string {
	if j.State != event.Queued {
		return ""
	}
	text := lane.Text(j.Queue, j.Priority, j.Version, j.Requires)
	if j.Group != "" {
		return group.Text(text, j.Group)
	}
	return text
}

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
