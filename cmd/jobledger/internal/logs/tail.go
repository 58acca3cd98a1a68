package logs

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"jobledger/commands/worker/attemptlog"
)

// SomeSkipped stands for an unknown number of bytes.
const SomeSkipped = -1

// compared is how many bytes before a place show whether the file is still what it was there.
const compared = 64

// tail reads a file that grows, and whose middle is left out when it is long: see package attemptlog. It maps
// each byte of the file to its place in the stream, so that it shows each one once.
type tail struct {
	file  *os.File // nil: not open
	read  int64    // the place in the file up to which it has been read
	shown int64    // the same place in the stream
	last  []byte   // what precedes it in the file
	rest  []byte   // the beginning of a character whose end has not come

	seen []int64 // the places of marks that the command wrote itself
}

// open opens the file, if that has not been done.
func (t *tail) open(open func() (*os.File, error)) (err error) {
	if t.file != nil {
		return nil
	}
	file, err := open()
	if err == nil {
		t.file = file
	}
	return err
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // it was only read
	}
}

// next returns what has been written since, in whole characters, and how many bytes before it were left out
// and have not been shown. more says that it should be called again at once.
func (t *tail) next() (text []byte, skipped int64, more bool, err error) {
	info, err := t.file.Stat()
	if err != nil {
		return nil, 0, false, err
	}
	size := info.Size()
	if size < t.read || !t.same() {
		return t.afterCut(size)
	}
	cut, err := t.cutAhead(size)
	if err != nil || cut {
		return t.afterCut(size)
	}
	text, err = t.readTo(size)
	return text, 0, false, err
}

// cutAhead reports whether something was left out behind what has been read.
func (t *tail) cutAhead(size int64) (bool, error) {
	text, err := io.ReadAll(io.NewSectionReader(t.file, t.read, size-t.read))
	if err != nil {
		return false, err
	}
	if i, _ := attemptlog.FindCut(text); i < 0 {
		return false, nil
	}
	whole, err := io.ReadAll(io.NewSectionReader(t.file, 0, size))
	if err != nil {
		return false, err
	}
	place, _ := t.findMark(whole)
	return place >= t.read, nil
}

// same reports whether the file still has what was read last.
func (t *tail) same() bool {
	now := make([]byte, len(t.last))
	n, _ := t.file.ReadAt(now, t.read-int64(len(now)))
	return bytes.Equal(now[:n], t.last)
}

// readTo reads up to a place in the file.
func (t *tail) readTo(end int64) ([]byte, error) {
	text, err := io.ReadAll(io.NewSectionReader(t.file, t.read, end-t.read))
	if err != nil {
		return nil, err
	}
	if info, err := t.file.Stat(); err != nil || info.Size() < end { // it was cut meanwhile: see the next call
		return nil, err
	}
	for at := 0; ; { // marks that were there before anything was left out
		i, _ := attemptlog.FindCut(text[at:])
		if i < 0 {
			break
		}
		t.seen = append(t.seen, t.read+int64(at+i))
		at += i + 1
	}
	t.read += int64(len(text))
	t.shown += int64(len(text))
	t.last = append(t.last, text...)
	t.last = append([]byte(nil), t.last[max(0, len(t.last)-compared):]...)
	text, t.rest = splitRune(append(t.rest, text...))
	return text, nil
}

// afterCut goes on where the middle of the file was left out, or more of it than before.
func (t *tail) afterCut(size int64) (text []byte, skipped int64, more bool, err error) {
	whole, err := io.ReadAll(io.NewSectionReader(t.file, 0, size))
	if err != nil {
		return nil, 0, false, err
	}
	place, out := t.findMark(whole)
	if place < 0 { // it was cut in another way
		t.read, t.last = size, nil
		return nil, SomeSkipped, false, nil
	}
	tail := place + attemptlog.CutLen // where it begins in the file
	if t.shown < place {              // what precedes the mark is still the beginning of the stream
		t.read, t.last = t.shown, whole[max(0, t.shown-compared):t.shown]
		text, err = t.readTo(place)
		return text, 0, true, err
	}
	if begin := place + out; t.shown < begin { // in the stream
		skipped = begin - t.shown
		t.shown, t.rest = begin, nil
	}
	t.read = min(t.shown-out+attemptlog.CutLen, size)
	t.last = append([]byte(nil), whole[max(tail, t.read-compared):t.read]...)
	text, err = t.readTo(size)
	return text, skipped, false, err
}

// findMark returns the place of the mark that says how much was left out, and that number; -1: there is no
// mark.
func (t *tail) findMark(whole []byte) (place, out int64) {
	for at := 0; ; {
		i, n := attemptlog.FindCut(whole[at:])
		if i < 0 {
			return -1, 0
		}
		place, own := int64(at+i), false
		for _, s := range t.seen {
			own = own || s == place
		}
		size := int64(len(whole)) - attemptlog.CutLen // from twice the beginning, to half as long again
		if !own && size >= 2*place && size <= 3*place+2 && size+n >= t.shown {
			return place, n
		}
		at += i + 1
	}
}

// splitRune cuts off the beginning of a character at the end of b: escaped alone, it would be no
// character.
func splitRune(b []byte) (whole, rest []byte) {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i], b[i:]
			}
			break
		}
	}
	return b, nil
}
