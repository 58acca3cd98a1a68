package draw

import (
	"fmt"
	"math"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/state"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/attempts"
)

// Bar is a picture of who had a job, from its first event to its end or to the moment of the page. The table
// of attempts has the same in words.
type Bar struct {
	From, To string
	Shapes   []Shape
}

// Shape is a claim or a refused write in a picture of one lane, 30 units high. Kinds differ by their shapes,
// not only by their colors; the lanes draw the same. Places are percent of the width.
type Shape struct {
	Kind   string // the outcome of the claim, open, or refused
	Title  string
	X, End float64
	Sign   float64 // lost: the last sign of life
	Lease  float64 // lost: the end of the lease
	Joined bool    // refused: a line leads from X, the end of its claim, to End
}

// leastLong is how wide a claim is, in percent, whose end has room for its shape.
const leastLong = 1.2

// Short reports whether s has a small shape in place of a long one.
func (s Shape) Short() bool { return s.End-s.X < leastLong }

// Width is how wide s is, in percent.
func (s Shape) Width() float64 { return hundredths(s.End - s.X) }

// Solid and Hollow are how wide these parts of a lost claim are.
func (s Shape) Solid() float64  { return hundredths(s.Sign - s.X) }
func (s Shape) Hollow() float64 { return hundredths(s.End - s.Sign) }

// hundredths is v as a page has it.
func hundredths(v float64) float64 { return math.Round(100*v) / 100 }

// LegendItem is a shape of the lanes, and what it means.
type LegendItem struct {
	Shape
	Text string
}

// Legend explains the shapes.
func Legend() []LegendItem {
	return []LegendItem{
		{Shape{Kind: "succeeded", X: 2, End: 94}, "succeeded"},
		{Shape{Kind: "failed", X: 2, End: 94}, "failed: a notch at its end"},
		{Shape{Kind: "released", X: 4, End: 94}, "given back: open at its end"},
		{Shape{Kind: "cancelled", X: 2, End: 94}, "cancelled: thin, up to a wall"},
		{Shape{Kind: "reclaimed", X: 2, Sign: 30, Lease: 58, End: 86},
			"lost: solid to the last heartbeat, hollow from there, a tick at the lease's end, ╳ where it was " +
				"taken back"},
		{Shape{Kind: "open", X: 2, End: 98}, "has not ended: a soft end"},
		{Shape{Kind: "refused", X: 0, End: 70, Joined: true}, "a write that came too late, joined to its claim"},
	}
}

// NewBar draws the claims of j, at least one, as of now.
func NewBar(j state.Job, claims []attempts.Attempt, now time.Time) *Bar {
	begin, end := claims[0].ClaimedAt, now
	if len(j.Events) > 0 {
		begin = j.Events[0].At
	}
	if j.State.Final() {
		end = j.Events[len(j.Events)-1].At
	}
	whole := max(end.Sub(begin), time.Microsecond)
	x := func(t time.Time) float64 {
		at := float64(t.Sub(begin)) / float64(whole)
		return float64(int(1e4*min(max(at, 0), 1))) / 100
	}
	b := &Bar{From: words.Millis(begin.In(now.Location())), To: words.Millis(end.In(now.Location()))}
	b.addRefused(j, claims, now, x) // first, so that claims cover the lines
	for _, a := range claims {
		s := Shape{Kind: a.Outcome.String(), X: x(a.ClaimedAt), End: x(a.EndedAt)}
		s.Title = fmt.Sprintf("attempt %d by %s: %s", a.Attempt, a.Worker.Name, s.Kind)
		switch a.Outcome {
		case 0:
			s.Kind, s.End = "open", x(end)
			s.Title = fmt.Sprintf("attempt %d by %s: has not ended", a.Attempt, a.Worker.Name)
		case event.KindReclaimed:
			s.Sign, s.Lease = s.X, s.End
			if a.LastHeartbeat.After(a.ClaimedAt) {
				s.Sign = x(a.LastHeartbeat)
			}
			i := slices.IndexFunc(j.Events, func(e event.Event) bool {
				return e.Kind() == event.KindReclaimed && e.Attempt == a.Attempt
			})
			if i >= 0 {
				if body, ok := j.Events[i].Body.(*event.Reclaimed); ok {
					s.Lease = x(body.LeaseUntil)
					s.Title += fmt.Sprintf(", its last sign of life %s, its lease to %s",
						clockOf(maxTime(a.ClaimedAt, a.LastHeartbeat), now), clockOf(body.LeaseUntil, now))
				}
			}
		}
		b.Shapes = append(b.Shapes, s)
	}
	return b
}

// addRefused adds the writes that were refused, each with a line from the end of its claim.
func (b *Bar) addRefused(j state.Job, claims []attempts.Attempt, now time.Time, x func(time.Time) float64) {
	for _, e := range j.Events {
		if e.Kind() != event.KindRefused {
			continue
		}
		s := Shape{Kind: "refused", X: x(e.At), End: x(e.At),
			Title: "refused: " + words.Describe(e, now.Location())}
		for _, a := range claims {
			if a.Attempt == e.Attempt && a.Outcome != 0 && !a.EndedAt.After(e.At) {
				s.X, s.Joined = x(a.EndedAt), true
			}
		}
		b.Shapes = append(b.Shapes, s)
	}
}

func clockOf(t, now time.Time) string { return t.In(now.Location()).Format("15:04:05") }

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
