package frame

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// Event is an event for people.
type Event struct {
	Pos   int64
	Job   event.JobID
	At    string
	UTC   string // the same, for an element time
	After string // how long after the event before; of a history
	Kind  string
	State string
	By    string
	What  string
	More  string // what is left out after it
	Error string // the detail of a failure
	Above bool   // that is above on the page
}

// EventOf is e as pages show it.
func (p *Site) EventOf(e event.Event) Event {
	zone := p.Now().Location()
	kind, _ := words.KindLabel(e)
	v := Event{Pos: e.Pos, Job: e.Job, At: words.Millis(e.At.In(zone)), UTC: Stamp(e.At), Kind: kind,
		By: words.Escape(e.Actor), What: words.Escape(words.Describe(e, zone))}
	if e.To != 0 {
		v.State = e.To.String()
	}
	if b, ok := e.Body.(*event.Failed); ok {
		v.Error = b.ErrorDetail
	}
	return v
}

// Did is what operators did.
type Did struct {
	List []actDoneView
	Rest string // how many came before; "": none
}

// actDoneView is what an operator did.
type actDoneView struct {
	At, UTC, By, What, More string
	Href                    string
}

// NewDid lists the acts of operators for a page at now; nil: there are none.
func NewDid(acts query.ActList, now time.Time) *Did {
	if len(acts.List) == 0 {
		return nil
	}
	did := &Did{Rest: print.MoreActs(acts)}
	for _, a := range acts.List {
		did.List = append(did.List, newActDone(a, now))
	}
	return did
}

// newActDone is a as a row of a page at now.
func newActDone(a query.Act, now time.Time) actDoneView {
	zone := now.Location()
	done := actDoneView{At: a.At.In(zone).Format("15:04:05"), UTC: Stamp(a.At), By: a.Actor,
		What: strings.ReplaceAll(a.Kind().String(), "_", " "),
		More: strings.TrimPrefix(words.Describe(a.Event, zone), "by "+a.Actor+"; "),
		Href: fmt.Sprintf("/events/%d", a.Pos)}
	if a.Count > 1 {
		done.What += ", " + words.Count(int64(a.Count), "job")
	}
	if a.Spread >= time.Second {
		done.What += ", spread over " + words.Roughly(a.Spread)
	}
	if a.At.Before(now.Add(-12 * time.Hour)) {
		done.At = a.At.In(zone).Format("01-02 15:04:05")
	}
	return done
}

// Finding is something that went wrong, in a sentence.
type Finding struct {
	Kind, Text string
	Pos        int64
}

// FindingsOf is what stands out in lanes, with times in zone.
func FindingsOf(ctx context.Context, tx *ledger.Tx, s query.Lanes, lanes *query.LaneChart,
	zone *time.Location) (views []Finding, err error) {
	found, err := query.Findings{Lanes: s, Chart: lanes}.Read(ctx, tx)
	for _, f := range found {
		views = append(views, Finding{f.Kind, print.FindingText(f, zone), f.Pos})
	}
	return views, err
}

// Marked is a piece of text that may be code.
type Marked struct {
	Text string
	Code bool
}

// MarkedText splits Markdown with code in backquotes.
func MarkedText(text string) (parts []Marked) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			parts = append(parts, Marked{strings.ReplaceAll(part, `\|`, "|"), i%2 == 1})
		}
	}
	return parts
}

// MaxTable is how many claims the table below the lanes has.
const MaxTable = 200
