package journal

import (
	"fmt"
	"reflect"
	"slices"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// Changes removes from b what j has already, and reports whether anything is left.
func Changes(j projection.Job, b *event.Edited) bool {
	if b.MaxAttempts == j.MaxAttempts {
		b.MaxAttempts = 0
	}
	if b.MaxRuntime == j.MaxRuntime {
		b.MaxRuntime = 0
	}
	if b.Backoff == j.Backoff {
		b.Backoff = event.Backoff{}
	}
	if slices.Equal(b.Requires, j.Requires) {
		b.Requires = nil
	}
	return !reflect.ValueOf(*b).IsZero()
}

// Other says how j, which has the id or key of the requested job, differs from it; "": it does not differ.
func Other(j projection.Job, queue, key, uniqueWhile, form string, payload []byte) string {
	switch {
	case j.Erased:
		return ", and its payload was erased"
	case j.Queue != queue:
		return ", in the queue " + j.Queue
	case j.Key != key:
		return ", with another key"
	case j.UniqueWhile != uniqueWhile && j.UniqueWhile != "":
		return fmt.Sprintf(" while it is %s", j.UniqueWhile)
	case j.UniqueWhile != uniqueWhile:
		return ", and its key is for ever"
	case j.Form != form:
		return ", and only one of the two jobs carries its command"
	case string(j.Payload) != string(payload) && j.PayloadAt == 0:
		return ", with another payload"
	}
	return ""
}
