package worker

import (
	"bytes"
	"io"
	"sync"
)

const maxLine = 64 << 10 // a line longer than this is broken

// both writes to keep, and to other unless that is nil.
func both(keep, other io.Writer) io.Writer {
	if other == nil {
		return keep
	}
	return io.MultiWriter(keep, other)
}

// head keeps the first bytes written to it and counts all of them.
type head struct {
	limit int
	kept  []byte
	size  int64
}

func (h *head) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	h.kept = append(h.kept, p[:min(len(p), max(0, h.limit-len(h.kept)))]...)
	return len(p), nil
}

// tail keeps the last bytes written to it, and at most as many again until they are asked for.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, n-t.limit):]
	if len(t.kept)+len(p) > 2*t.limit {
		t.kept = append(t.kept[:0], t.last()...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

func (t *tail) last() []byte { return t.kept[max(0, len(t.kept)-t.limit):] }

// prefixWriter puts a prefix before each line and writes whole lines only, many in one Write, so that those of
// children that share a file do not mix.
type prefixWriter struct {
	mu     sync.Mutex
	w      io.Writer
	prefix string
	line   []byte // what has come of the next line
}

// newPrefixWriter returns a writer to w, which must permit concurrent writes where it is shared. Flush it at the end.
func newPrefixWriter(w io.Writer, prefix string) *prefixWriter {
	return &prefixWriter{w: w, prefix: prefix}
}

func (p *prefixWriter) Write(b []byte) (int, error) {
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

// Flush ends a line that has begun.
func (p *prefixWriter) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) == 0 {
		return nil
	}
	_, err := p.w.Write([]byte(p.prefix + string(p.line) + "\n"))
	p.line = p.line[:0]
	return err
}
