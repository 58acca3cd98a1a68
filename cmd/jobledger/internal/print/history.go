package print

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
)

// HistoryLine is one event of a history.
type HistoryLine struct {
	event.Event
	After   string // how long after the event before; "" for the first
	Skipped string // what is left out after it; "" for nothing
}

// HistoryLines are the events that people read. Of the heartbeats of a long job, of which there are
// thousands, the first and the last are there.
func HistoryLines(events []event.Event) (lines []HistoryLine) {
	for i := 0; i < len(events); i++ {
		l := HistoryLine{Event: events[i]}
		if i > 0 {
			l.After = words.Gap(events[i].At.Sub(events[i-1].At))
		}
		if beats := heartbeats(events[i:]); beats > 3 {
			l.Skipped = skipped(events[i : i+beats-1])
			i += beats - 2
		}
		lines = append(lines, l)
	}
	return lines
}

// LastState is the state to which events have led.
func LastState(events []event.Event) (state event.State) {
	for _, e := range events {
		if e.To != 0 {
			state = e.To
		}
	}
	return state
}

// skipped replaces all heartbeats but the first.
func skipped(beats []event.Event) string {
	longest := time.Duration(0)
	for i, e := range beats[1:] {
		longest = max(longest, e.At.Sub(beats[i].At))
	}
	return fmt.Sprintf("%s more, the longest pause was %s", words.Count(int64(len(beats)-1), "heartbeat"),
		words.Gap(longest))
}

// heartbeats is the number of heartbeats at the beginning of events.
func heartbeats(events []event.Event) int {
	for i, e := range events {
		if e.Kind() != event.KindHeartbeat {
			return i
		}
	}
	return len(events)
}
