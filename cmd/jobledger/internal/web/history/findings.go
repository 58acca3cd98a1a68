package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of what counts as an outage.
const (
	outageGap      = 5 * time.Minute // between two failures of one outage
	outageFailures = 20
)

// Finding is something that went wrong within a window, in a sentence.
type Finding struct {
	Kind string // dead_host, silent, frozen, twice, outage, pause, deploy
	At   time.Time
	Text string
	Pos  int64 // an event to look at; 0: none
}

// Findings returns what stands out in the lanes of s, in the order of time, with times in zone.
func (l *Lanes) Findings(ctx context.Context, tx *ledger.Tx, s Span, zone *time.Location) ([]Finding, error) {
	clock := func(t time.Time) string { return t.In(zone).Format("15:04:05") }
	at := func(ms int64) time.Time { return l.From.Add(time.Duration(ms) * time.Millisecond) }
	found := l.silent(at, clock)
	found = append(found, l.frozen(at, clock)...)
	for _, p := range l.Pauses {
		text := fmt.Sprintf("Queue %s was paused from %s to %s, by %s: %s.", p.Queue, clock(at(p.From)),
			clock(at(p.To)), p.By, render.ReasonOrNone(p.Reason))
		if at(p.To).Equal(l.To) {
			text = fmt.Sprintf("Queue %s is paused since %s, by %s: %s.", p.Queue, clock(at(p.From)), p.By,
				render.ReasonOrNone(p.Reason))
		}
		found = append(found, Finding{Kind: "pause", At: at(p.From), Text: text})
	}
	for _, d := range l.Deploys {
		found = append(found, Finding{Kind: "deploy", At: at(d.At), Text: fmt.Sprintf("From %s on %s ran %s in "+
			"place of %s.", clock(at(d.At)), strings.Join(d.Workers, ", "), cmp.Or(d.To, "no version"),
			cmp.Or(d.From, "no version"))})
	}
	outages, err := outages(ctx, tx, s, clock)
	found = append(found, outages...)
	slices.SortStableFunc(found, func(a, b Finding) int { return a.At.Compare(b.At) })
	return found, err
}

// taken says how many jobs were taken back from the rows after a moment, and when the first.
func (l *Lanes) taken(rows []int, after int64, at func(int64) time.Time,
	clock func(time.Time) string) string {
	n, first := 0, int64(0)
	for i, row := range l.Row {
		if Outcomes[l.How[i]] == event.KindReclaimed && slices.Contains(rows, row) && l.End[i] >= after {
			if n++; n == 1 || l.End[i] < first {
				first = l.End[i]
			}
		}
	}
	if n == 0 {
		return "No job was taken back from it."
	}
	if n == 1 {
		return fmt.Sprintf("One job was taken back, at %s.", clock(at(first)))
	}
	return fmt.Sprintf("%s were taken back, the first at %s.", render.Count(int64(n), "job"), clock(at(first)))
}

// silent are the workers that fell silent, in one finding where it was a whole host.
func (l *Lanes) silent(at func(int64) time.Time, clock func(time.Time) string) (found []Finding) {
	hosts := make(map[string][]int) // rows of workers that fell silent
	live := make(map[string]map[string]bool)
	for host, workers := range l.hosts {
		live[host] = maps.Clone(workers)
	}
	for i, lane := range l.Lanes {
		if live[lane.Host] == nil {
			live[lane.Host] = make(map[string]bool)
		}
		if live[lane.Host][lane.Worker] = true; len(lane.Silent) > 0 {
			hosts[lane.Host] = append(hosts[lane.Host], i)
		}
	}
	for host, rows := range hosts {
		var names []string
		first, until := l.Lanes[rows[0]].Silent[0][0], l.Lanes[rows[0]].Silent[0][1]
		for _, row := range rows {
			if name := l.Lanes[row].Worker; !slices.Contains(names, name) { // it has a row for each queue
				names = append(names, name)
			}
			first = min(first, l.Lanes[row].Silent[0][0])
			until = max(until, l.Lanes[row].Silent[0][1])
		}
		f := Finding{Kind: "silent", At: at(first)}
		subject := strings.Join(names, " and ")
		if len(names) == len(live[host]) && host != "" {
			f.Kind = "dead_host"
			subject = fmt.Sprintf("Host %s (%s)", host, strings.Join(names, ", "))
		}
		f.Text = fmt.Sprintf("%s fell silent at %s. %s", subject, clock(at(first)), l.taken(rows, first, at, clock))
		if !at(until).Equal(l.To) {
			f.Text += fmt.Sprintf(" Started again by %s.", clock(at(until)))
		}
		found = append(found, f)
	}
	return found
}

// frozen are the workers that wrote after they had lost their jobs.
func (l *Lanes) frozen(at func(int64) time.Time, clock func(time.Time) string) (found []Finding) {
	seen := make(map[int]bool)
	for _, m := range l.Marks {
		lane := l.Lanes[m.Row]
		if m.Twice {
			found = append(found, Finding{Kind: "twice", At: at(m.At), Text: m.Text, Pos: m.Pos})
		}
		if seen[m.Row] || m.Bar < 0 || Outcomes[l.How[m.Bar]] != event.KindReclaimed {
			continue
		}
		seen[m.Row] = true
		sign := l.Start[m.Bar]
		for _, s := range l.Sign {
			if s[0] == int64(m.Bar) {
				sign = s[1]
			}
		}
		found = append(found, Finding{Kind: "frozen", At: at(sign), Pos: m.Pos, Text: fmt.Sprintf(
			"%s stopped at %s and went on at %s: in between its job was taken back, so its write was refused.",
			lane.Worker, clock(at(sign)), clock(at(m.At)))})
	}
	return found
}

// burst is a run of failures with one code in one queue.
type burst struct {
	queue, code, detail string
	first, last         time.Time
	n                   int
	pos                 int64
}

// outages are the windows in which one queue failed for one reason, again and again.
func outages(ctx context.Context, tx *ledger.Tx, s Span, clock func(time.Time) string) (found []Finding,
	err error) {
	open := make(map[[2]string]*burst)
	end := func(b *burst) {
		if b.n >= outageFailures {
			text := fmt.Sprintf("%s of %s failed with %s from %s to %s", render.Count(int64(b.n), "attempt"), b.queue,
				b.code, clock(b.first), clock(b.last))
			if b.detail != "" {
				text += ": " + render.Shorten(b.detail)
			}
			found = append(found, Finding{Kind: "outage", At: b.first, Text: text + ".", Pos: b.pos})
		}
	}
	err = EachFailure(ctx, tx, s, func(e event.Event, queue, code, detail string) {
		key := [2]string{queue, code}
		b := open[key]
		if b != nil && e.At.Sub(b.last) > outageGap {
			end(b)
			b = nil
		}
		if b == nil {
			b = &burst{queue: queue, code: code, detail: detail, first: e.At, pos: e.Pos}
			open[key] = b
		}
		b.n, b.last = b.n+1, e.At
	})
	for _, b := range open {
		end(b)
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Pos, b.Pos) })
	return found, err
}
