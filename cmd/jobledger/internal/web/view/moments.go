package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of what is kept for the marks of the bar of moments.
const (
	maxMoments  = 200_000
	momentsPage = 50_000 // events that one call reads at most
)

// Moment is an event that people look for.
type Moment struct {
	Pos   int64     `json:"pos"`
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`  // of the event, or version for a new version of a worker
	Count int       `json:"count"` // moments that this one stands for
	// Row is, of two rows, 1 for what people and machines did, 2 for what failed or came too late.
	Row   int       `json:"row,omitempty"`
	Until time.Time `json:"until,omitzero"` // of two rows: the end of a pause; absent while it lasts
}

// ranks are the kinds of moments, the worst first; failed means for good.
var ranks = [...]string{"refused", "failed", "reclaimed", "restored", "rebuilt", "queue_paused",
	"queue_resumed", "version"}

var momentKinds = []event.Kind{event.KindRefused, event.KindFailed, event.KindReclaimed, event.KindRestored,
	event.KindRebuilt, event.KindQueuePaused, event.KindQueueResumed, event.KindWorkerStarted}

// MomentKinds are the kinds of moments, the worst first.
func MomentKinds() []string { return ranks[:] }

// mark is the stored form of a moment: 16 bytes.
type mark struct {
	pos  int64
	at   uint32 // seconds since 1970
	rank uint8
	// queue is the place of the queue in those of the moments, where it was paused or resumed.
	queue uint16
}

// Moments knows where in the ledger something went wrong. It reads each event once for all who ask. It is
// safe for concurrent use; the zero value is ready.
type Moments struct {
	mu       sync.Mutex
	pos      int64         // everything up to it was read
	end      await.SeenEnd // at pos
	marks    []mark
	dropped  [len(ranks)]int   // marks that are no longer kept, by rank
	versions map[string]string // of the last process, by worker
	queues   map[string]uint16 // that were paused
	first    time.Time         // of the first event
}

// Pos is the position up to which everything was read.
func (m *Moments) Pos() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pos
}

// Refresh reads what was recorded since the last call.
func (m *Moments) Refresh(ctx context.Context, tx *ledger.Tx) error {
	tail, err := tx.Tail(ctx)
	if err != nil || tail == 0 {
		return err
	}
	return m.refresh(ctx, tx, tail)
}

// refresh is Refresh up to tail.
func (m *Moments) refresh(ctx context.Context, tx *ledger.Tx, tail int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	holds, err := m.end.Holds(ctx, tx, tail)
	if err != nil {
		return err
	}
	if tail < m.pos || !holds { // another ledger took its place
		m.pos, m.marks, m.versions, m.dropped, m.end = 0, nil, nil, [len(ranks)]int{}, await.SeenEnd{}
		m.queues, m.first = nil, time.Time{}
	}
	if tail == m.pos {
		return nil
	}
	if m.first.IsZero() {
		first, _, err := tx.OneEvent(ctx, ledger.Filter{})
		if err != nil {
			return err
		}
		m.first = first.At
	}
	read := 0
	f := ledger.Filter{Kinds: momentKinds, After: m.pos, Until: tail, Limit: momentsPage}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		read++
		m.pos = e.Pos
		m.add(e)
	}
	if read < momentsPage {
		m.pos = tail
	}
	if err := m.end.Move(ctx, tx, m.pos); err != nil {
		return err
	}
	if len(m.marks) > maxMoments {
		old := len(m.marks) - maxMoments/2
		for _, k := range m.marks[:old] {
			m.dropped[k.rank]++
		}
		m.marks = slices.Delete(m.marks, 0, old)
	}
	return nil
}

func (m *Moments) add(e event.Event) {
	kind := e.Kind().String()
	switch e.Kind() {
	case event.KindFailed:
		if e.To != event.FailedState {
			return
		}
	case event.KindWorkerStarted:
		if m.versions == nil {
			m.versions = make(map[string]string)
		}
		before, known := m.versions[e.Worker.Name]
		m.versions[e.Worker.Name] = e.Worker.Version
		if !known || before == e.Worker.Version {
			return
		}
		kind = "version"
	}
	k := mark{pos: e.Pos, at: uint32(e.At.Unix()), rank: uint8(slices.Index(ranks[:], kind))}
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		k.queue = m.placeOf(b.Queue)
	case *event.QueueResumed:
		k.queue = m.placeOf(b.Queue)
	}
	m.marks = append(m.marks, k)
}

// placeOf is the index of a queue among those that were paused.
func (m *Moments) placeOf(queue string) uint16 {
	if m.queues == nil {
		m.queues = make(map[string]uint16)
	}
	if _, known := m.queues[queue]; !known {
		m.queues[queue] = uint16(len(m.queues))
	}
	return m.queues[queue]
}

// Columns returns at most one moment for each of px columns from the first event to tail, the worst one, and
// how many moments of each kind there were.
func (m *Moments) Columns(px int, tail int64) (found []Moment, counts map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	byRank := m.dropped
	last := int64(-1)
	for _, k := range m.marks {
		if k.pos > tail {
			break
		}
		byRank[k.rank]++
		column := k.pos * int64(px) / max(tail, 1)
		if column == last {
			worst := &found[len(found)-1]
			worst.Count++
			if slices.Index(ranks[:], worst.Kind) > int(k.rank) {
				*worst = k.moment(worst.Count)
			}
			continue
		}
		last = column
		found = append(found, k.moment(1))
	}
	counts = make(map[string]int)
	for rank, n := range byRank {
		counts[ranks[rank]] = n
	}
	return found, counts
}

func (k mark) moment(count int) Moment {
	return Moment{Pos: k.pos, At: time.Unix(int64(k.at), 0).UTC(), Kind: ranks[k.rank], Count: count}
}

// Around returns the moments before and after pos; position 0: there is none.
func (m *Moments) Around(pos int64) (before, after Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, found := slices.BinarySearchFunc(m.marks, pos, func(k mark, pos int64) int { return int(k.pos - pos) })
	if i > 0 {
		before = m.marks[i-1].moment(1)
	}
	if found {
		i++
	}
	if i < len(m.marks) {
		after = m.marks[i].moment(1)
	}
	return before, after
}
