// Package prefetch reads lines of a history, or pages, a little ahead of their consumer.
//
//	for line, err := range prefetch.Lines(store.Lines(ctx, ledger.Filter{}, true)) {
//		…
//	}
//
// Held by TestImportRoundTripOfBadNight and TestImportInStepsNamesTheLine of package commands, and by
// TestLinesOfAWindow of package export. This package is not part of the Go API, and may change in any
// release.
package prefetch

import (
	"iter"

	"jobledger/ledger/event"
)

// Limits of each of the three lists that Lines holds.
const (
	prefetchLines = 256
	prefetchBytes = 1 << 20 // of bodies
)

// Lines yields what lines yields. It reads lines in a goroutine of its own, a little ahead of the caller,
// so that the producer and the consumer run on two processors.
func Lines(lines iter.Seq2[event.Line, error]) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		lists, stop, ended := make(chan lineList, 1), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			defer close(lists)
			sendLists(lines, lists, stop)
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
				l.lines[i] = event.Line{} // so that only the caller keeps its body
			}
			if l.err != nil {
				yield(event.Line{}, l.err)
				return
			}
		}
	}
}

type lineList struct {
	lines []event.Line
	err   error // after these lines
}

// sendLists sends lines as lists, until they end or stop is closed.
func sendLists(lines iter.Seq2[event.Line, error], lists chan<- lineList, stop <-chan struct{}) {
	var list []event.Line
	size := 0
	send := func(err error) (goOn bool) {
		select {
		case lists <- lineList{list, err}:
			list, size = make([]event.Line, 0, prefetchLines), 0
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
		if (len(list) == prefetchLines || size >= prefetchBytes) && !send(nil) {
			return
		}
	}
	send(nil)
}
