package logfile

import (
	"io"
	"os"
	"unicode/utf8"
)

// tail reads a file that grows.
type tail struct {
	file *os.File // nil: not open
	read int64
	rest []byte // the beginning of a character whose end has not come
}

// open opens the file, if that has not been done.
func (t *tail) open(path string) (err error) {
	if t.file != nil {
		return nil
	}
	file, err := os.Open(path)
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

// next returns what has been written since, in whole characters. Where the file is shorter than before, its
// middle was left out since: then skipped says so, and the tail goes on at the end, of which an unknown part
// has been read.
func (t *tail) next() (text []byte, skipped bool, err error) {
	info, err := t.file.Stat()
	if err != nil {
		return nil, false, err
	}
	if info.Size() < t.read {
		t.read = info.Size()
		return nil, true, nil
	}
	text, err = io.ReadAll(io.NewSectionReader(t.file, t.read, info.Size()-t.read))
	if err != nil {
		return nil, false, err
	}
	t.read += int64(len(text))
	text, t.rest = splitRune(append(t.rest, text...))
	return text, false, nil
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
