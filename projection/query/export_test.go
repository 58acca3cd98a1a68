package query

// EndedWell is endedWell for the tests, which are of another package.
var EndedWell = endedWell

// DrawAtMost is drawAtMost for the tests, of a chart without rows.
func (l *LaneChart) DrawAtMost(asked Lanes, most int) {
	l.drawAtMost(asked, make(map[rowKey]int), most)
}
