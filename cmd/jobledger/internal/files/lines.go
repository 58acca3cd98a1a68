package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// maxLine is the longest line of a history in bytes. A body of 1 MiB takes six times that if each byte is
// written as \u0000.
const maxLine = 16 << 20

// Lines reads the JSONL of 'jobledger export', from the beginning each time it is ranged over. It stops at
// the first line that cannot be read, which it yields with an error that says why; the caller counts the
// lines.
func Lines(content *io.SectionReader) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		lines := bufio.NewScanner(io.NewSectionReader(content, 0, content.Size()))
		lines.Buffer(make([]byte, 64<<10), maxLine)
		for n := 1; lines.Scan(); n++ {
			text := lines.Bytes()
			if n == 1 {
				text = bytes.TrimPrefix(text, []byte("\ufeff"))
			}
			var line event.Line
			if err := line.UnmarshalJSON(text); err != nil {
				err = explainLine(text, err)
				if !lines.Scan() && !endsInLineFeed(content) {
					err = fmt.Errorf("%w; the file seems to be cut off", err)
				}
				yield(line, err)
				return
			}
			if !yield(line, nil) {
				return
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = errors.New("longer than 16 MiB")
		}
		if err != nil {
			yield(event.Line{}, err)
		}
	}
}

// explainLine describes err for a reader who sees the file and does not know the ledger.
func explainLine(text []byte, err error) error {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return errors.New("it is empty")
	case text[0] != '{':
		return errors.New("not a JSON object; what is wanted is the JSONL of 'jobledger export'")
	}
	return errors.New(plain(err))
}

func endsInLineFeed(content *io.SectionReader) bool {
	last := make([]byte, 1)
	_, err := content.ReadAt(last, content.Size()-1)
	return err == nil && last[0] == '\n'
}

// plain returns the text of err without the prefixes that name the package which found it.
func plain(err error) string {
	text := err.Error()
	for _, sentinel := range []error{ledger.ErrDamaged, ledger.ErrConflict, projection.ErrIllegal} {
		text = strings.Replace(text, sentinel.Error()+": ", "", 1)
	}
	return text
}

// CountLines returns how many lines content has, one for each event; -1 if it cannot be read.
func CountLines(content *io.SectionReader) (n int64) {
	buffer := make([]byte, 1<<20)
	for r := io.NewSectionReader(content, 0, content.Size()); ; {
		read, err := r.Read(buffer)
		n += int64(bytes.Count(buffer[:read], []byte("\n")))
		switch {
		case err == io.EOF:
			return n
		case err != nil:
			return -1
		}
	}
}
