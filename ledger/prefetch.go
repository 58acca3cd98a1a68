package ledger

import "iter"

// How much Ahead holds at a time, in each of three lists.
const (
	aheadLines = 256
	aheadBytes = 1 << 20 // of bodies
)

// Prefetch yields what lines yields, and goes through them in a goroutine of its own, some way ahead of the caller: so the
// work of making them and the work with them share two processors.
func Prefetch(lines iter.Seq2[Line, error]) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		lists, stop, ended := make(chan lineList, 1), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			defer close(lists)
			goAhead(lines, lists, stop)
		}()
		defer func() {
			close(stop)
			<-ended
		}()
		for l := range lists {
			for i := range l.lines {
				if !yield(l.lines[i], nil) {
					return
				}
				l.lines[i] = Line{} // its body is the caller's alone now
			}
			if l.err != nil {
				yield(Line{}, l.err)
				return
			}
		}
	}
}

type lineList struct {
	lines []Line
	err   error // behind these lines
}

// goAhead sends lines as lists, until they end or stop is closed.
func goAhead(lines iter.Seq2[Line, error], lists chan<- lineList, stop <-chan struct{}) {
	var list []Line
	size := 0
	send := func(err error) (goOn bool) {
		select {
		case lists <- lineList{list, err}:
			list, size = make([]Line, 0, aheadLines), 0
			return err == nil
		case <-stop:
			return false
		}
	}
	for line, err := range lines {
		if err != nil {
			send(err)
			return
		}
		list = append(list, line)
		size += len(line.Body)
		if (len(list) == aheadLines || size >= aheadBytes) && !send(nil) {
			return
		}
	}
	send(nil)
}
