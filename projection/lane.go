package projection

import (
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
