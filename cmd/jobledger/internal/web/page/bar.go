package page

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/cmd/jobledger/internal/state"
	"jobledger/ledger/event"
	"jobledger/projection/attempts"
)

// barWidth is the width of a picture in its own units.
const barWidth = 1000

// bar is a picture of who had a job, from its first event to its end or to the moment of the page. The table
// of attempts has the same in words.
type bar struct {
	From, To string
	Spans    []span
	Marks    []span // refused writes
}

// span is a piece of a bar. Shapes differ as colors do: silent is hollow.
type span struct {
	X, Width int
	Class    string // the outcome of the claim, open, or silent
	Title    string
}

// newBar draws the claims of j as of now, of which there is one at least.
func newBar(j state.Job, claims []attempts.Attempt, now time.Time) *bar {
	begin, end := claims[0].ClaimedAt, now
	if len(j.Events) > 0 {
		begin = j.Events[0].At
	}
	if j.State.Final() {
		end = j.Events[len(j.Events)-1].At
	}
	whole := max(end.Sub(begin), time.Microsecond)
	x := func(t time.Time) int {
		at := float64(t.Sub(begin)) / float64(whole)
		return int(barWidth * min(max(at, 0), 1))
	}
	b := &bar{From: render.Millis(begin.In(now.Location())), To: render.Millis(end.In(now.Location()))}
	add := func(from, to time.Time, class, title string) {
		left := min(x(from), barWidth-2)
		b.Spans = append(b.Spans, span{left, max(x(to)-left, 2), class, title})
	}
	for _, a := range claims {
		title := fmt.Sprintf("attempt %d by %s", a.Attempt, a.Worker.Name)
		switch a.Outcome {
		case 0:
			add(a.ClaimedAt, end, "open", title+": has not ended")
		case event.KindReclaimed:
			sign := a.ClaimedAt
			if a.LastHeartbeat.After(sign) {
				sign = a.LastHeartbeat
			}
			add(a.ClaimedAt, sign, a.Outcome.String(), title+": up to its last heartbeat")
			add(sign, a.EndedAt, "silent", title+": no heartbeat, until it was reclaimed")
		default:
			add(a.ClaimedAt, a.EndedAt, a.Outcome.String(), title+": "+a.Outcome.String())
		}
	}
	for _, e := range j.Events {
		if e.Kind() == event.KindRefused {
			b.Marks = append(b.Marks, span{X: min(max(x(e.At), 6), barWidth-6), Title: "refused: " +
				render.Describe(e, now.Location())})
		}
	}
	return b
}
