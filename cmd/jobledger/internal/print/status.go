package print

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// Status is a table of how many jobs each queue has in which state at now, and, of several queues, a line of
// their total, which it returns.
func Status(queues []status.Queue, now time.Time) (t *words.Table, total status.Queue) {
	t = &words.Table{Columns: []words.Column{{Title: "QUEUE", Least: 8}, {Title: "READY", Right: true},
		{Title: "OLDEST", Right: true},
		{Title: "LATER", Right: true}, {Title: "CLAIMED", Right: true}, {Title: "RUNNING", Right: true},
		{Title: "SUCCEEDED", Right: true}, {Title: "FAILED", Right: true}, {Title: "CANCELLED", Right: true}}}
	total = status.Queue{Queue: projection.Queue{Name: "total"}, Jobs: make(map[event.State]int64)}
	shown := shownStates(func(yield func(map[event.State]int64) bool) {
		for _, q := range queues {
			if !yield(q.Jobs) {
				return
			}
		}
	})
	if len(shown) == len(event.States()) {
		t.Columns = append(t.Columns, words.Column{Title: "BLOCKED", Right: true})
	}
	row := func(q status.Queue) {
		oldest := "-"
		if !q.OldestReady.IsZero() {
			oldest = words.Roughly(now.Sub(q.OldestReady))
		}
		cells := []string{q.Name, fmt.Sprint(q.Ready), oldest, fmt.Sprint(q.Scheduled)}
		for _, s := range shown[1:] {
			cells = append(cells, fmt.Sprint(q.Jobs[s]))
		}
		t.Add(cells...)
	}
	for _, q := range queues {
		row(q)
		state.Add(&total, q)
	}
	if len(queues) > 1 {
		row(total)
	}
	return t, total
}

// CountsNow is a table of what has become of the queues.
func CountsNow(found []status.Queue) *words.Table {
	t := &words.Table{Columns: []words.Column{{Title: "NOW", Least: 8}}}
	shown := shownStates(func(yield func(map[event.State]int64) bool) {
		for _, q := range found {
			if !yield(q.Now) {
				return
			}
		}
	})
	for _, s := range shown {
		t.Columns = append(t.Columns, words.Column{Title: strings.ToUpper(s.String()), Right: true})
	}
	for _, q := range found {
		cells := []string{q.Name}
		for _, s := range shown {
			cells = append(cells, fmt.Sprint(q.Now[s]))
		}
		t.Add(cells...)
	}
	return t
}

// shownStates returns the states that have a column: all of them, but blocked only where a job is so.
func shownStates(counts iter.Seq[map[event.State]int64]) []event.State {
	for n := range counts {
		if n[event.Blocked] != 0 {
			return event.States()
		}
	}
	return slices.DeleteFunc(event.States(), func(s event.State) bool { return s == event.Blocked })
}

// StatusThenJSON is the JSON form of a queue at a moment; now counts its jobs today, including those enqueued
// since.
type StatusThenJSON struct {
	state.Queue
	AsOf *string    `json:"as_of" openapi:"optional=as_of,pos,now"`
	Pos  int64      `json:"pos"`
	Now  CountsJSON `json:"now"`
}

// CountsJSON are jobs by state.
type CountsJSON struct {
	Queued    int64 `json:"queued"`
	Claimed   int64 `json:"claimed"`
	Running   int64 `json:"running"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Blocked   int64 `json:"blocked,omitempty"`
}

// StatusJSON is the JSON form of q, at now or at a moment.
func StatusJSON(q status.Queue, past query.Past, now time.Time) any {
	if !past.Given {
		return state.NewQueue(q, now)
	}
	return StatusThenJSON{state.NewQueue(q, past.At), words.TimeOrNull(past.At), past.Pos, countsOf(q.Now)}
}

func countsOf(n map[event.State]int64) CountsJSON {
	return CountsJSON{n[event.Queued], n[event.ClaimedState], n[event.Running], n[event.SucceededState],
		n[event.FailedState], n[event.CancelledState], n[event.Blocked]}
}
