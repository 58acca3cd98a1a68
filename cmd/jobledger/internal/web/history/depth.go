package history

import (
	"context"
	"errors"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/web/moves"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/keyframe"
)

// DepthPoints is how many points [Depth] has, unless the window says otherwise, and MaxDepthPoints the most.
const (
	DepthPoints    = 100
	MaxDepthPoints = 1000
)

// Depths are how many jobs had not ended at some moments, in columns.
type Depths struct {
	Pos    int64       `json:"pos"`
	From   time.Time   `json:"from"`
	To     time.Time   `json:"to"`
	At     []time.Time `json:"at"`
	Queued []int64     `json:"queued"` // also those for later
	Held   []int64     `json:"held"`   // claimed or running
}

// ReadDepth reads the depth of the queue of s, or of all, at s.Columns points as far from each other, up to
// the end of s. It reads the events of s once, or, where these are many, the keyframe before each point.
func ReadDepth(ctx context.Context, tx *ledger.Tx, s Span) (*Depths, error) {
	n := s.Columns
	if n == 0 {
		n = DepthPoints
	}
	n = min(n, MaxDepthPoints)
	out := &Depths{Pos: s.To.Pos, From: s.From.At, To: s.To.At, At: make([]time.Time, n),
		Queued: make([]int64, n), Held: make([]int64, n)}
	for i := range n {
		out.At[i] = s.From.At.Add(s.length() / time.Duration(n) * time.Duration(i+1)).Truncate(time.Microsecond)
	}
	out.At[n-1] = s.To.At
	if s.To.Pos == 0 {
		return out, nil
	}
	if s.To.Pos-s.From.Pos > int64(n)*keyframe.Every {
		if near, err := keyframe.Near(ctx, tx, s.From.Pos); err != nil || near != nil {
			return out, errors.Join(err, out.byPoints(ctx, tx, s))
		}
	}
	return out, out.byEvents(ctx, tx, s)
}

// byPoints reads the jobs that had not ended at each point, from the keyframe before it.
func (d *Depths) byPoints(ctx context.Context, tx *ledger.Tx, s Span) error {
	for i, at := range d.At {
		m, err := s.To, error(nil)
		if i < len(d.At)-1 {
			m, err = projection.AtTime(ctx, tx, at)
		}
		if err == nil {
			err = d.add(ctx, tx, m, s.Queue, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add counts the jobs that had not ended at m.
func (d *Depths) add(ctx context.Context, tx *ledger.Tx, m projection.Moment, queue string, i int) error {
	if m.Pos == 0 {
		return nil
	}
	jobs, err := projection.OpenJobsAsOf(ctx, tx, m)
	for _, j := range jobs {
		if queue == "" || j.Queue == queue {
			d.Queued[i] += moves.Change(0, j.State, moves.IsQueued)
			d.Held[i] += moves.Change(0, j.State, event.State.Held)
		}
	}
	return err
}

// byEvents counts from the beginning of s on.
func (d *Depths) byEvents(ctx context.Context, tx *ledger.Tx, s Span) error {
	if err := d.add(ctx, tx, s.From, s.Queue, 0); err != nil {
		return err
	}
	err := eachTransition(ctx, tx, s, func(m transition) {
		i, _ := slices.BinarySearchFunc(d.At, m.at, time.Time.Compare)
		i = min(i, len(d.At)-1)
		d.Queued[i] += moves.Change(m.from, m.to, moves.IsQueued)
		d.Held[i] += moves.Change(m.from, m.to, event.State.Held)
	})
	for i := 1; i < len(d.At); i++ {
		d.Queued[i] += d.Queued[i-1]
		d.Held[i] += d.Held[i-1]
	}
	return err
}
