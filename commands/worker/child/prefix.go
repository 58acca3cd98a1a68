package child

import (
	"bytes"
	"io"
	"sync"
)

const maxLine = 64 << 10 // a longer line is split

// PrefixWriter puts a prefix before each line. It writes whole lines only, several in one Write, so that the
// lines of commands that share a file do not mix.
type PrefixWriter struct {
	mu     sync.Mutex
	w      io.Writer
	prefix string
	line   []byte // the beginning of the next line
}

// NewPrefixWriter returns a PrefixWriter to w. If several share w, it must permit concurrent writes. Call
// Flush at the end.
func NewPrefixWriter(w io.Writer, prefix string) *PrefixWriter {
	return &PrefixWriter{w: w, prefix: prefix}
}

// Write writes the lines that b completes and keeps the rest.
func (p *PrefixWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	var out []byte
	for len(b) > 0 {
		rest := maxLine - len(p.line)
		i := bytes.IndexByte(b[:min(len(b), rest)], '\n')
		if i < 0 && len(b) < rest {
			p.line = append(p.line, b...)
			break
		}
		end, next := i, i+1
		if i < 0 {
			end, next = rest, rest
		}
		out = append(out, p.prefix...)
		out = append(out, p.line...)
		out = append(out, b[:end]...)
		out = append(out, '\n')
		p.line, b = p.line[:0], b[next:]
	}
	if len(out) > 0 {
		if _, err := p.w.Write(out); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Flush writes a line that has no end yet.
func (p *PrefixWriter) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) == 0 {
		return nil
	}
	_, err := p.w.Write([]byte(p.prefix + string(p.line) + "\n"))
	p.line = p.line[:0]
	return err
}
