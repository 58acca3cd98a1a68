package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/status"
)

// MaxBars is how many bars [Lanes] have at most: where there are more claims, the short ones next to each
// other are joined. Only long claims and open ones that are more than that remain.
const MaxBars = 20_000

// Span is a window of the ledger, and what to look at in it.
type Span struct {
	From, To projection.Moment
	Queue    string // "": all
	Worker   string // its name, or the boot of a process; "": all
	Columns  int    // of the picture: claims shorter than one are joined; 0: none is
	// Own is that only what the jobs of Queue say counts: nothing that their workers did elsewhere, and not
	// when they fell silent, which other jobs say too.
	Own bool
}

// length is how long the window is, at least a millisecond.
func (s Span) length() time.Duration { return max(s.To.At.Sub(s.From.At), time.Millisecond) }

// millis is t in milliseconds after the beginning, within the window.
func (s Span) millis(t time.Time) int64 {
	return min(max(t.Sub(s.From.At), 0), s.length()).Milliseconds()
}

// Lanes are the claims of a window by worker, as a picture needs them. Times are milliseconds after From.
// The claims are in columns, one number for each bar; a bar is one claim, or several short ones next to each
// other that ended well, and in strips any that ended in the same way.
type Lanes struct {
	Pos     int64      `json:"pos"` // of the last event that counts
	From    time.Time  `json:"from"`
	To      time.Time  `json:"to"`
	Claims  int        `json:"claims"`
	Joined  int        `json:"joined"` // claims that are no bar of their own
	Strips  bool       `json:"strips"` // short claims that ended badly are joined too
	Lanes   []Lane     `json:"lanes"`
	Row     []int      `json:"row"` // index in Lanes
	Slot    []int      `json:"slot"`
	Start   []int64    `json:"start"`
	End     []int64    `json:"end"`
	How     []int      `json:"how"`   // index in Outcomes
	Count   []int      `json:"count"` // claims
	Event   []int64    `json:"event"` // pos of the first one's event claimed
	Sign    [][2]int64 `json:"sign"`  // bar, and the last sign of life of a claim that was taken back or is open
	Lease   [][2]int64 `json:"lease"` // bar, and when the lease of a claim that was taken back had ended
	Gone    [][2]int   `json:"gone"`  // bar that was taken back, and the next bar of its job
	Marks   []Mark     `json:"marks"`
	Pauses  []Pause    `json:"pauses"`
	Acts    []Act      `json:"acts"`
	Deploys []Deploy   `json:"deploys"`
	Hows    []string   `json:"outcomes"`

	All []attempts.Attempt `json:"-"` // the claims, in the order in which they began

	leases map[claimKey]time.Time // when the leases of claims ended that were taken back
}

// Outcomes are how claims end; the first is one that has not ended.
var Outcomes = [...]event.Kind{0, event.KindSucceeded, event.KindFailed, event.KindReleased,
	event.KindReclaimed, event.KindCancelled}

// Lane is one worker: the processes of one name on one host.
type Lane struct {
	Worker    string     `json:"worker"`
	Host      string     `json:"host"`
	Version   string     `json:"version"` // of its last process
	Slots     int        `json:"slots"`
	Claims    int        `json:"claims"`
	Starts    []int64    `json:"starts"` // of its processes
	Versions  []int64    `json:"versions"`
	Processes int        `json:"processes"`
	Silent    [][2]int64 `json:"silent"` // from the last sign of life to when it was replaced, or to the end

	ends   []int64            // of each slot
	last   []int              // the last bar of each slot
	strips [len(Outcomes)]int // the slot of the strip of each outcome, and 1; 0: there is none
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

// ReadLanes reads the lanes of s. It costs the claims that were live within s.
func ReadLanes(ctx context.Context, tx *ledger.Tx, s Span) (l *Lanes, err error) {
	l = &Lanes{Pos: s.To.Pos, From: s.From.At, To: s.To.At, Lanes: []Lane{}, Marks: []Mark{}, Pauses: []Pause{},
		Acts: []Act{}, Deploys: []Deploy{}, Sign: [][2]int64{}, Lease: [][2]int64{}, Gone: [][2]int{}}
	for _, k := range Outcomes {
		l.Hows = append(l.Hows, k.String())
	}
	l.Hows[0] = "open"
	if s.To.Pos == 0 { // nothing had happened
		l.draw(s, nil, 1, false)
		return l, nil
	}
	l.All, err = attempts.List(ctx, tx, attempts.Filter{From: s.From, To: s.To, Queue: s.Queue,
		Worker: s.Worker})
	if err != nil {
		return nil, err
	}
	if err := l.readLeases(ctx, tx, s); err != nil {
		return nil, err
	}
	rows := make(map[[2]string]int)
	if err := l.addWorkers(ctx, tx, s, rows); err != nil {
		return nil, err
	}
	l.drawAtMost(s, rows, MaxBars)
	if err := l.addMarks(ctx, tx, s, rows); err != nil {
		return nil, err
	}
	if err := l.addPauses(ctx, tx, s); err != nil {
		return nil, err
	}
	return l, l.addActs(ctx, tx, s)
}

// rowOf is the row of w; it is added where it is not there.
func (l *Lanes) rowOf(w event.Worker, rows map[[2]string]int) int {
	key := [2]string{w.Host, w.Name}
	row, ok := rows[key]
	if !ok {
		row = len(l.Lanes)
		rows[key] = row
		l.Lanes = append(l.Lanes, Lane{Worker: w.Name, Host: w.Host, Starts: []int64{}, Versions: []int64{},
			Silent: [][2]int64{}})
	}
	return row
}

// addWorkers adds the rows: of workers that had claims, that started, or that fell silent.
func (l *Lanes) addWorkers(ctx context.Context, tx *ledger.Tx, s Span, rows map[[2]string]int) error {
	var workers []event.Worker
	seen := make(map[string]bool)
	note := func(w event.Worker) {
		if !seen[w.Boot] {
			seen[w.Boot] = true
			workers = append(workers, w)
		}
	}
	for _, a := range l.All {
		note(a.Worker)
	}
	var lost []status.LostWorker
	if !s.Own {
		var err error
		if lost, err = status.LostWorkers(ctx, tx, s.From, s.To); err != nil {
			return err
		}
	}
	if s.Queue != "" || s.Worker != "" {
		lost = slices.DeleteFunc(lost, func(w status.LostWorker) bool { return !seen[w.Boot] })
	}
	for _, w := range lost {
		note(w.Worker.Worker)
	}
	slices.SortStableFunc(workers, func(a, b event.Worker) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name, b.Name))
	})
	for _, w := range workers {
		l.Lanes[l.rowOf(w, rows)].Processes++
	}
	if err := l.addStarts(ctx, tx, s, rows, seen); err != nil {
		return err
	}
	for _, w := range lost {
		until := s.To.At
		if !w.Replaced.IsZero() {
			until = w.Replaced
		}
		lane := &l.Lanes[l.rowOf(w.Worker.Worker, rows)]
		lane.Silent = append(lane.Silent, [2]int64{s.millis(w.SeenAt), s.millis(until)})
	}
	return nil
}
