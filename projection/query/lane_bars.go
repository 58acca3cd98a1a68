package query

import (
	"math"
	"slices"
	"time"

	"jobledger/ledger/event"
)

// coarsest is how many columns wide a claim may be that is joined with others while those that ended badly
// are still bars of their own.
const coarsest = 16

// drawAtMost makes the bars, at most so many if possible: it joins bars that are shorter than one column,
// then two, and so on. Where too many claims ended badly, these are joined too, in strips.
func (l *LaneChart) drawAtMost(s Lanes, rows map[rowKey]int, most int) {
	if s.Columns == 0 {
		l.draw(s, rows, 1, false)
		return
	}
	alone := 0 // claims that are not joined unless in strips
	for _, a := range l.All {
		if !endedWell(a.Outcome) {
			alone++
		}
	}
	if alone <= most {
		for columns := int64(1); columns <= coarsest; columns *= 2 {
			if l.draw(s, rows, columns, false); len(l.Row) <= most {
				return
			}
		}
	}
	l.Strips = true
	for columns := int64(1); ; columns *= 2 {
		if l.draw(s, rows, columns, true); len(l.Row) <= most || columns > int64(s.Columns) {
			return
		}
	}
}

func endedWell(how event.Kind) bool { return how == event.KindSucceeded || how == event.KindReleased }

// draw makes the bars. Claims that ended well, shorter than so many columns and no further apart, are joined;
// in strips, those that ended in the same way.
func (l *LaneChart) draw(s Lanes, rows map[rowKey]int, columns int64, strips bool) {
	short := int64(-1)
	if s.Columns > 0 {
		short = columns * s.Length().Milliseconds() / int64(s.Columns)
	}
	l.Row, l.Slot, l.Start, l.End, l.How, l.Count, l.Event = []int{}, []int{}, []int64{}, []int64{}, []int{},
		[]int{}, []int64{}
	l.Sign, l.Lease, l.Gone, l.Claims, l.Joined = l.Sign[:0], l.Lease[:0], l.Gone[:0], 0, 0
	for i := range l.Lanes {
		lane := &l.Lanes[i]
		lane.ends, lane.last, lane.Claims, lane.Slots, lane.strips = nil, nil, 0, 0, [len(LaneOutcomes)]int{}
	}
	gone := make(map[int64]int) // the job's number, and the bar from which it was taken back
	for i := range l.All {
		a := &l.All[i]
		if a.EndedAt.After(s.To.At) {
			a.EndedAt, a.Outcome, a.ExitCode, a.Signal = time.Time{}, 0, nil, "" // it ended later
		}
		row := l.rowOf(s.key(a.Worker, a.Queue), rows)
		lane := &l.Lanes[row]
		lane.Claims++
		l.Claims++
		start, end := s.millis(a.ClaimedAt), s.Length().Milliseconds()
		if a.Outcome != 0 {
			end = s.millis(a.EndedAt)
		}
		b := bar{row: row, start: start, end: end, how: slices.Index(LaneOutcomes[:], a.Outcome)}
		from, taken := gone[a.N]
		inStrip := strips && a.Outcome != 0 && end-start < short
		if inStrip {
			b.slot = lane.strip(b.how)
		} else {
			b.slot = lane.free(b, short)
		}
		last := lane.last[b.slot]
		joins := last >= 0 && end-start < short && l.How[last] == b.how && start-l.End[last] <= short &&
			(l.Count[last] > 1 || l.End[last]-l.Start[last] < short) && (inStrip || endedWell(a.Outcome) && !taken)
		if joins {
			l.End[last], l.Count[last] = max(end, l.End[last]), l.Count[last]+1
			l.Joined++
		} else {
			last = l.add(b, a.Pos)
		}
		if taken {
			l.Gone = append(l.Gone, [2]int{from, last})
			delete(gone, a.N)
		}
		lane.last[b.slot] = last
		if !inStrip {
			lane.ends[b.slot] = max(end, lane.ends[b.slot])
		}
		if a.Outcome == event.KindReclaimed {
			gone[a.N] = last
		}
		if a.Outcome == event.KindReclaimed || a.Outcome == 0 {
			sign := a.ClaimedAt
			if a.LastHeartbeat.After(sign) {
				sign = a.LastHeartbeat
			}
			l.Sign = append(l.Sign, [2]int64{int64(last), s.millis(sign)})
		}
		if end, ok := l.leases[claimKey{a.N, a.Attempt}]; ok && a.Outcome == event.KindReclaimed {
			l.Lease = append(l.Lease, [2]int64{int64(last), s.millis(end)})
		}
	}
	joined := func(bar int) bool { return l.Count[bar] > 1 }
	if strips { // a bar of several claims has no one sign of life or lease, and no one job that went from it
		many := func(of [2]int64) bool { return joined(int(of[0])) }
		l.Sign, l.Lease = slices.DeleteFunc(l.Sign, many), slices.DeleteFunc(l.Lease, many)
		l.Gone = slices.DeleteFunc(l.Gone, func(g [2]int) bool { return joined(g[0]) || joined(g[1]) })
	}
	for i := range l.Lanes {
		l.Lanes[i].Slots = max(1, len(l.Lanes[i].ends))
	}
}

// bar is the bar of one claim in the picture.
type bar struct {
	row, slot  int
	start, end int64
	how        int // index in LaneOutcomes
}

// add adds b, whose claim began at pos, and returns its index.
func (l *LaneChart) add(b bar, pos int64) int {
	l.Row, l.Slot = append(l.Row, b.row), append(l.Slot, b.slot)
	l.Start, l.End = append(l.Start, b.start), append(l.End, b.end)
	l.How, l.Count, l.Event = append(l.How, b.how), append(l.Count, 1), append(l.Event, pos)
	return len(l.Row) - 1
}

// free returns the first slot that is free when b begins, or for a short one soon after.
func (l *Lane) free(b bar, short int64) int {
	slot := slices.IndexFunc(l.ends, func(end int64) bool { return end <= b.start })
	if slot < 0 && short >= 0 && b.end-b.start < short {
		slot = slices.IndexFunc(l.ends, func(end int64) bool { return end <= b.start+short })
	}
	if slot < 0 {
		slot = l.newSlot(0)
	}
	return slot
}

// strip returns the slot for short claims with this outcome, which holds no others.
func (l *Lane) strip(how int) int {
	if l.strips[how] == 0 {
		l.strips[how] = l.newSlot(math.MaxInt64) + 1
	}
	return l.strips[how] - 1
}

func (l *Lane) newSlot(end int64) int {
	l.ends, l.last = append(l.ends, end), append(l.last, -1)
	return len(l.ends) - 1
}
