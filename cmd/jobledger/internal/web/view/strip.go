package view

import (
	"cmp"
	"slices"
	"time"
)

// Rows of a strip.
const (
	RowPeople   = 1 // what people and machines did
	RowFailures = 2 // what failed for good, or came too late
)

// rowOf is the row of a mark.
func (k mark) row() int {
	if kind := ranks[k.rank]; kind == "refused" || kind == "failed" {
		return RowFailures
	}
	return RowPeople
}

// First is the time of the first event; zero: there is no event.
func (m *Moments) First() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first
}

// Strip returns the moments from from to to, up to the position tail, in px columns of time: at most one for
// each column and row, the worst one, and each pause with its end, also one that began before. They are in
// the order of their rows, and then of their positions.
func (m *Moments) Strip(from, to time.Time, px int, tail int64) (found []Moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin, end := from.Unix(), to.Unix()
	columns := make(map[[2]int64]int) // places in found, by row and column
	paused := make(map[uint16]int)    // places of pauses that last, by queue
	for _, k := range m.marks {
		at := int64(k.at)
		if k.pos > tail || at > end {
			break
		}
		kind := ranks[k.rank]
		if place, lasts := paused[k.queue]; kind == "queue_resumed" && lasts {
			found[place].Until = k.moment(1).At
			delete(paused, k.queue)
			continue
		}
		one := k.moment(1)
		one.Row = k.row()
		if kind == "queue_paused" {
			paused[k.queue] = len(found)
			found = append(found, one)
			continue
		}
		if at < begin {
			continue
		}
		column := [2]int64{int64(one.Row), (at - begin) * int64(px) / max(end-begin+1, 1)}
		place, taken := columns[column]
		if !taken {
			columns[column] = len(found)
			found = append(found, one)
			continue
		}
		worst := &found[place]
		if one.Count = worst.Count + 1; slices.Index(ranks[:], worst.Kind) > int(k.rank) {
			*worst = one
		}
		worst.Count = one.Count
	}
	found = slices.DeleteFunc(found, func(one Moment) bool { // pauses that were over before
		return one.At.Unix() < begin && !one.Until.IsZero() && one.Until.Unix() < begin
	})
	slices.SortStableFunc(found, func(a, b Moment) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Pos, b.Pos))
	})
	return found
}
