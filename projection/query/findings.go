package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of what counts as an outage.
const (
	outageGap      = 5 * time.Minute // between two failures of one outage
	outageFailures = 20
)

// Finding is something that went wrong within a window.
type Finding struct {
	Kind  string // dead_host, silent, frozen, twice, outage, pause, deploy
	At    time.Time
	Until time.Time // when it ended; zero: it has not, or that is not known
	Pos   int64     // an event to look at; 0: none

	Queue   string    // outage, pause
	Workers []string  // the names of those that it is about
	Host    string    // dead_host
	Jobs    int       // dead_host, silent: taken back; outage: attempts
	Taken   time.Time // dead_host, silent: when the first job was taken back

	By, Reason    string // pause
	Before, After string // deploy: the versions
	Code, Detail  string // outage; twice: Detail says what was done twice
}

// Findings asks what stands out in the lanes of a window, which were read before.
type Findings struct {
	Lanes
	Chart *LaneChart
}

// Read returns them in the order of time. It reads the failures of the window.
func (q Findings) Read(ctx context.Context, tx *ledger.Tx) (found []Finding, err error) {
	l := q.Chart
	found = append(l.silent(), l.frozen()...)
	for _, p := range l.Pauses {
		f := Finding{Kind: "pause", At: l.at(p.From), Until: l.at(p.To), Queue: p.Queue, By: p.By, Reason: p.Reason}
		if f.Until.Equal(l.To) {
			f.Until = time.Time{}
		}
		found = append(found, f)
	}
	for _, d := range l.Deploys {
		found = append(found, Finding{Kind: "deploy", At: l.at(d.At), Workers: d.Workers, Before: d.From,
			After: d.To})
	}
	if l.Pos > 0 {
		var groups FailureGroups
		groups, err = Failures{Span: q.Span, By: ByQueue}.Read(ctx, tx)
		for _, g := range groups.List {
			found = append(found, g.outages()...)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pos, b.Pos))
	})
	return found, err
}

// at is a time of the chart.
func (l *LaneChart) at(ms int64) time.Time { return l.From.Add(time.Duration(ms) * time.Millisecond) }

// addTaken adds how many jobs were taken back from the rows after a moment, and when the first.
func (l *LaneChart) addTaken(f *Finding, rows []int, after int64) {
	for i, row := range l.Row {
		if LaneOutcomes[l.How[i]] == event.KindReclaimed && slices.Contains(rows, row) && l.End[i] >= after {
			if at := l.at(l.End[i]); f.Jobs == 0 || at.Before(f.Taken) {
				f.Taken = at
			}
			f.Jobs++
		}
	}
}

// silent are the workers that fell silent, in one finding where it was a whole host.
func (l *LaneChart) silent() (found []Finding) {
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
		f := Finding{Kind: "silent", At: l.at(first), Workers: names}
		if len(names) == len(live[host]) && host != "" {
			f.Kind, f.Host = "dead_host", host
		}
		l.addTaken(&f, rows, first)
		if at := l.at(until); !at.Equal(l.To) {
			f.Until = at
		}
		found = append(found, f)
	}
	return found
}

// frozen are the workers that wrote after they had lost their jobs.
func (l *LaneChart) frozen() (found []Finding) {
	seen := make(map[int]bool)
	for _, m := range l.Marks {
		if m.Twice {
			found = append(found, Finding{Kind: "twice", At: l.at(m.At), Detail: m.Text, Pos: m.Pos})
		}
		if seen[m.Row] || m.Bar < 0 || LaneOutcomes[l.How[m.Bar]] != event.KindReclaimed {
			continue
		}
		seen[m.Row] = true
		sign := l.Start[m.Bar]
		for _, s := range l.Sign {
			if s[0] == int64(m.Bar) {
				sign = s[1]
			}
		}
		found = append(found, Finding{Kind: "frozen", At: l.at(sign), Until: l.at(m.At), Pos: m.Pos,
			Workers: []string{l.Lanes[m.Row].Worker}})
	}
	return found
}

// outages are the times in which g, the failures of one queue with one code, came again and again.
func (g *FailureGroup) outages() (found []Finding) {
	for first := 0; first < len(g.Each); {
		next := first + 1
		for next < len(g.Each) && g.Each[next].At.Sub(g.Each[next-1].At) <= outageGap {
			next++
		}
		if n := next - first; n >= outageFailures {
			found = append(found, Finding{Kind: "outage", At: g.Each[first].At, Until: g.Each[next-1].At, Jobs: n,
				Queue: g.Queue, Code: g.Code, Detail: g.Each[first].Detail, Pos: g.Each[first].Pos})
		}
		first = next
	}
	return found
}
