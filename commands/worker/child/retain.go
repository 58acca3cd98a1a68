package child

import "io"

// both returns a writer to keep, and to other unless it is nil.
func both(keep, other io.Writer) io.Writer {
	if other == nil {
		return keep
	}
	return io.MultiWriter(keep, other)
}

// head keeps the first bytes written to it and counts all.
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

// tail keeps the last bytes written to it; it holds at most twice its limit.
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
