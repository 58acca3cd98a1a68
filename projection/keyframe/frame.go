package keyframe

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Frame is what the events up to Pos add up to. New returns that of the beginning.
type Frame struct {
	Pos   int64
	ended map[string]*[3]int64 // by queue: how many jobs are in the states from Succeeded on
	open  map[int64]bool       // the numbers of the jobs that have not ended; true: held, false: not
}

// New returns the Frame before the first event.
func New() *Frame {
	return &Frame{ended: make(map[string]*[3]int64), open: make(map[int64]bool)}
}

// Add adds a transition, of the job with the number n, which is in this queue. The queue of one that neither
// ends nor was over does not count.
func (f *Frame) Add(n int64, from, to event.State, queue string) {
	switch {
	case from.Final():
		f.count(queue, from, -1)
	case from.Held() && to.Held(): // a heartbeat
		return
	}
	if to.Final() {
		f.count(queue, to, 1)
		delete(f.open, n)
		return
	}
	f.open[n] = to.Held()
}

func (f *Frame) count(queue string, s event.State, change int64) {
	if f.ended[queue] == nil {
		f.ended[queue] = new([3]int64)
	}
	f.ended[queue][s-event.SucceededState] += change
}

// Ended returns how many jobs had ended, by queue and state.
func (f *Frame) Ended() map[string]map[event.State]int64 {
	ended := make(map[string]map[event.State]int64)
	for queue, counts := range f.ended {
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if ended[queue] == nil {
				ended[queue] = make(map[event.State]int64)
			}
			ended[queue][event.SucceededState+event.State(i)] = n
		}
	}
	return ended
}

// Jobs returns how many jobs there were.
func (f *Frame) Jobs() int64 {
	n := int64(len(f.open))
	for _, counts := range f.ended {
		for _, ended := range counts {
			n += ended
		}
	}
	return n
}

// Open returns the numbers of the jobs that had not ended, in order.
func (f *Frame) Open() []int64 { return slices.Sorted(maps.Keys(f.open)) }

// Held returns the numbers of the jobs that were claimed or running, in order.
func (f *Frame) Held() []int64 { return f.numbers(true) }

func (f *Frame) numbers(held bool) (ns []int64) {
	for n, h := range f.open {
		if h == held {
			ns = append(ns, n)
		}
	}
	slices.Sort(ns)
	return ns
}

// transitions leaves out heartbeats and takeovers, which do not matter here. The queue is needed only where
// a job ends, or had ended.
var transitions = event.SQL(`SELECT e.job, e.from_state, e.to_state, CASE
    WHEN e.from_state BETWEEN {state:succeeded} AND {state:cancelled}
        OR e.to_state BETWEEN {state:succeeded} AND {state:cancelled} THEN
    (SELECT q.data ->> 'queue' FROM events q WHERE q.pos = e.job) END
FROM events e WHERE e.pos > ? AND e.pos <= ? AND e.to_state > 0
    AND e.kind NOT IN ({kinds:keepsClaim}) ORDER BY e.pos`)

// Advance adds the events after f up to pos, which exist. It costs these events.
func (f *Frame) Advance(ctx context.Context, tx *ledger.Tx, pos int64) error {
	damaged := int64(0)
	err := tx.Each(ctx, func(row []driver.Value) bool {
		n, _ := row[0].(int64)
		from, _ := row[1].(int64)
		to, known := row[2].(int64)
		if n == 0 || !known || to > int64(event.Blocked) || from > int64(event.Blocked) || from < 0 {
			damaged++
			return true
		}
		f.Add(n, event.State(from), event.State(to), ledger.Text(row[3]))
		return true
	}, transitions, f.Pos, pos)
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%w: %d events after %d up to %d have no known job or state", ledger.ErrDamaged, damaged,
			f.Pos, pos)
	}
	f.Pos = pos
	return err
}

// Stored is a row of the table keyframes.
type Stored struct {
	Pos          int64
	Ended        string
	Queued, Held []byte
}

// Stored returns f as the table holds it. What the events make the same is stored the same.
func (f *Frame) Stored() Stored {
	ended, _ := json.Marshal(f.ended) // strings and numbers
	return Stored{f.Pos, string(ended), deltas(f.numbers(false)), deltas(f.numbers(true))}
}

// Equal reports whether two rows are the same.
func (s Stored) Equal(o Stored) bool {
	return s.Pos == o.Pos && s.Ended == o.Ended && bytes.Equal(s.Queued, o.Queued) && bytes.Equal(s.Held, o.Held)
}

// frame returns the Frame of a row.
func (s Stored) frame() (*Frame, error) {
	f := New()
	f.Pos = s.Pos
	err := json.Unmarshal([]byte(s.Ended), &f.ended)
	if err == nil && f.ended == nil {
		err = fmt.Errorf("no counts")
	}
	for queue, counts := range f.ended {
		if counts == nil {
			err = fmt.Errorf("no counts of %s", queue)
		}
	}
	if err == nil {
		err = f.addNumbers(s.Queued, false)
	}
	if err == nil {
		err = f.addNumbers(s.Held, true)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: keyframe %d: %w", ledger.ErrDamaged, s.Pos, err)
	}
	return f, nil
}

// deltas encodes ascending numbers: the first, then the differences.
func deltas(ns []int64) []byte {
	encoded := make([]byte, 0, 2*len(ns))
	last := int64(0)
	for _, n := range ns {
		encoded = binary.AppendUvarint(encoded, uint64(n-last))
		last = n
	}
	return encoded
}

func (f *Frame) addNumbers(encoded []byte, held bool) error {
	last := int64(0)
	for len(encoded) > 0 {
		delta, size := binary.Uvarint(encoded)
		last += int64(delta)
		if size <= 0 || delta == 0 || last <= 0 || last > f.Pos {
			return fmt.Errorf("the numbers of jobs cannot be read")
		}
		f.open[last], encoded = held, encoded[size:]
	}
	return nil
}
