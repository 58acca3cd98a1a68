package query

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// MaxBars is how many bars [Lanes] have at most: where there are more claims, the short ones next to each
// other are joined. Only long claims and open ones that are more than that remain.
const MaxBars = 20_000

// Lanes asks who had which job when within a window, as a picture shows it.
type Lanes struct {
	Span
	Columns int    // of the picture: claims shorter than one are joined; 0: none is
	Bars    int    // how many bars there are at most, as far as [MaxBars] can be kept; 0: that many
	Group   string // of rows: one of [Groups]; "": the first

	// Own is that only what the jobs of Queue say counts: nothing that their workers did elsewhere, and not
	// when they fell silent, which other jobs say too.
	Own bool
}

// Groups are what the rows of lanes can be grouped by. With queue, a worker has a row for each queue of which
// it had jobs.
var Groups = []string{"host", "queue", "none"}

// rowKey is what a row is about: a worker, within a group.
type rowKey struct{ group, host, name string }

// key is the row of w for jobs of a queue.
func (q Lanes) key(w event.Worker, queue string) rowKey {
	switch q.Group {
	case "queue":
		return rowKey{queue, w.Host, w.Name}
	case "none":
		return rowKey{"", w.Host, w.Name}
	}
	return rowKey{w.Host, w.Host, w.Name}
}

// compare orders rows: by group, host and name, and without groups by name first.
func (k rowKey) compare(o rowKey) int {
	if k.group == "" && o.group == "" {
		return cmp.Or(cmp.Compare(k.name, o.name), cmp.Compare(k.host, o.host))
	}
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.host, o.host), cmp.Compare(k.name, o.name))
}

// millis is t in milliseconds after the beginning, within the window.
func (s Span) millis(t time.Time) int64 {
	return min(max(t.Sub(s.From.At), 0), s.Length()).Milliseconds()
}

// LaneChart is the answer to [Lanes]: the claims of a window by worker. Times are milliseconds after From.
// The claims are in columns, one number for each bar; a bar is one claim, or several short ones next to each
// other that ended well, and in strips any that ended in the same way.
type LaneChart struct {
	Pos     int64      `json:"pos"` // of the last event that counts
	From    time.Time  `json:"from"`
	To      time.Time  `json:"to"`
	Claims  int        `json:"claims"`
	Joined  int        `json:"joined"` // claims that are not a bar of their own
	Strips  bool       `json:"strips"` // short claims that ended badly are joined too
	Group   string     `json:"group"`  // of the lanes: one of Groups
	Lanes   []Lane     `json:"lanes"`
	Idle    []Lane     `json:"idle"` // workers that lived within the window and had no claim of it
	Row     []int      `json:"row"`  // index in Lanes
	Slot    []int      `json:"slot"`
	Start   []int64    `json:"start"`
	End     []int64    `json:"end"`
	How     []int      `json:"how"`   // index in LaneOutcomes
	Count   []int      `json:"count"` // claims
	Event   []int64    `json:"event"` // pos of the first one's event claimed
	Sign    [][2]int64 `json:"sign"`  // bar, and the last sign of life of a claim that was taken back or is open
	Lease   [][2]int64 `json:"lease"` // bar, and when the lease of a claim that was taken back had ended
	Gone    [][2]int   `json:"gone"`  // bar that was taken back, and the next bar of its job
	Marks   []Mark     `json:"marks"`
	Pauses  []Pause    `json:"pauses"`
	Deploys []Deploy   `json:"deploys"`
	Hows    []string   `json:"outcomes"`

	All []Attempt `json:"-"` // the claims, in the order in which they began

	Did ActList `json:"-"` // what operators did, in the order of time

	hosts  map[string]map[string]bool // all workers that lived within the window
	leases map[claimKey]time.Time     // when the leases of claims ended that were taken back
}

// LaneOutcomes are how claims end; the first is one that has not ended.
var LaneOutcomes = [...]event.Kind{0, event.KindSucceeded, event.KindFailed, event.KindReleased,
	event.KindReclaimed, event.KindCancelled}

// Lane is one worker: the processes of one name on one host.
type Lane struct {
	Group     string     `json:"group"` // the host or the queue; "": none
	Worker    string     `json:"worker"`
	Host      string     `json:"host"`
	Version   string     `json:"version"` // of its last process
	Slots     int        `json:"slots"`
	Claims    int        `json:"claims"`
	Starts    []int64    `json:"starts"` // of its processes
	Versions  []int64    `json:"versions"`
	Processes int        `json:"processes"`
	Silent    [][2]int64 `json:"silent"` // from the last sign of life to when it was replaced, or to the end

	ends   []int64                // of each slot
	last   []int                  // the last bar of each slot
	strips [len(LaneOutcomes)]int // the slot of the strip of each outcome, and 1; 0: there is none
}

// Mark is a refused write.
type Mark struct {
	Row   int    `json:"row"`
	At    int64  `json:"at"`
	Pos   int64  `json:"pos"`
	N     int64  `json:"job"` // the job's number
	Twice bool   `json:"twice"`
	Text  string `json:"text"`
	Bar   int    `json:"bar"` // of its claim; -1: it is not in the window

	event event.Event
}

// Pause is a window in which a queue gave no jobs.
type Pause struct {
	Queue  string `json:"queue"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Read returns the lanes. It reads the claims that were live within the window.
func (q Lanes) Read(ctx context.Context, tx *ledger.Tx) (l *LaneChart, err error) {
	l = &LaneChart{Pos: q.To.Pos, From: q.From.At, To: q.To.At, Group: cmp.Or(q.Group, Groups[0]),
		Lanes: []Lane{}, Idle: []Lane{}, Marks: []Mark{}, Pauses: []Pause{},
		Deploys: []Deploy{}, Sign: [][2]int64{}, Lease: [][2]int64{}, Gone: [][2]int{}}
	for _, k := range LaneOutcomes {
		l.Hows = append(l.Hows, k.String())
	}
	l.Hows[0] = "open"
	if q.To.Pos == 0 { // nothing had happened
		l.draw(q, nil, 1, false)
		return l, nil
	}
	rows := make(map[rowKey]int)
	if l.All, err = (Attempts{Span: q.Span}).Read(ctx, tx); err == nil {
		err = l.readLeases(ctx, tx, q.Span)
	}
	if err == nil {
		err = l.addWorkers(ctx, tx, q, rows)
	}
	if err != nil {
		return nil, err
	}
	l.drawAtMost(q, rows, cmp.Or(q.Bars, MaxBars))
	if err = l.addMarks(ctx, tx, q, rows); err == nil {
		err = l.addPauses(ctx, tx, q.Span)
	}
	if err == nil {
		l.Did, err = Acts{Span: q.Span, Limit: maxActs}.Read(ctx, tx)
		slices.Reverse(l.Did.List)
	}
	return l, err
}

// rowOf is the row for k; it is added if it is missing.
func (l *LaneChart) rowOf(k rowKey, rows map[rowKey]int) int {
	row, ok := rows[k]
	if !ok {
		row = len(l.Lanes)
		rows[k] = row
		l.Lanes = append(l.Lanes, newLane(k))
	}
	return row
}

func newLane(k rowKey) Lane {
	return Lane{Group: k.group, Worker: k.name, Host: k.host, Slots: 1, Starts: []int64{}, Versions: []int64{},
		Silent: [][2]int64{}}
}

// rowsOf are the lanes of w, which has one in each group.
func (l *LaneChart) rowsOf(w event.Worker) (lanes []*Lane) {
	for _, all := range [][]Lane{l.Lanes, l.Idle} {
		for i := range all {
			if all[i].Worker == w.Name && all[i].Host == w.Host {
				lanes = append(lanes, &all[i])
			}
		}
	}
	return lanes
}

// Workers is how many workers the lanes are of.
func (l *LaneChart) Workers() int {
	workers := make(map[[2]string]bool)
	for _, lane := range l.Lanes {
		workers[[2]string{lane.Host, lane.Worker}] = true
	}
	return len(workers)
}
