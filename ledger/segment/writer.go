package segment

import (
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"jobledger/ledger/event"
	"jobledger/ledger/proof"
)

// maxMember is how many bytes the lines of one member may have. It bounds what a reader keeps.
const maxMember = 256 << 20

// Writer writes a segment file. It is not for concurrent use.
type Writer struct {
	collector
	out    *counted
	member *gzip.Writer
	text   []byte // of the member that is being filled
	err    error  // of an earlier call
}

// NewWriter returns a Writer of the segment file of r to out.
func NewWriter(out io.Writer, r Range) (*Writer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	c := &counted{out: out, sum: sha256.New()}
	member, err := gzip.NewWriterLevel(c, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	return &Writer{collector: newCollector(r), out: c, member: member}, nil
}

// Add writes an event: first the carried-in ones, job by job in the order of their first events, then each of
// the range in the order of positions. e has its Job.
func (w *Writer) Add(e *event.Event) error {
	if w.err == nil {
		w.err = w.add(e)
	}
	return w.err
}

func (w *Writer) add(e *event.Event) error {
	if e.Pos > w.facts.Lo && w.last <= w.facts.Lo { // the carried-in ones have members of their own
		if err := w.endMember(); err != nil {
			return err
		}
	}
	begin := len(w.text)
	w.text = append(e.AppendLeaf(w.text), '\n')
	if len(w.text) > maxMember {
		return fmt.Errorf("segment: the events up to %d have more than %d bytes", e.Pos, maxMember)
	}
	if err := w.line(e, w.text[begin:]); err != nil {
		return err
	}
	if w.lines == MemberLines {
		return w.endMember()
	}
	return nil
}

// endMember writes the lines that were added since the last member.
func (w *Writer) endMember() error {
	if w.lines == 0 {
		return nil
	}
	if err := w.nextMember(w.out.n); err != nil {
		return err
	}
	w.member.Reset(w.out)
	if _, err := w.member.Write(w.text); err != nil {
		return err
	}
	w.text = w.text[:0]
	return w.member.Close()
}

// Close ends the file and returns what it holds. It is an error if an event of the range is missing. Close
// does not close the underlying writer.
func (w *Writer) Close() (Facts, error) {
	if w.err == nil {
		w.err = w.complete()
	}
	if w.err != nil {
		return Facts{}, w.err
	}
	w.err = fmt.Errorf("segment: the file is closed")
	w.facts.Bytes = w.out.n
	w.out.sum.Sum(w.facts.SHA256[:0])
	return w.facts, nil
}

// counted counts and hashes what is written to out.
type counted struct {
	out io.Writer
	sum hash.Hash
	n   int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	return n, err
}

// collector finds out what the lines of a file are, for the one who writes it and for the one who reads it.
// It refuses lines that are out of order.
type collector struct {
	facts   Facts
	index   builder
	summary *summary // nil: it is not asked for
	content hash.Hash
	last    int64       // the position of the last line
	job     event.JobID // of the last carried-in line
	begun   int64       // the position of that job's first event
	lines   int         // of the member so far
	leaves  []proof.Hash
}

func newCollector(r Range) collector {
	return collector{facts: Facts{Range: r}, content: sha256.New(),
		index: builder{jobs: make(map[event.JobID]*place), queues: make(map[string]string)}}
}

// line takes an event and its line, with the line feed.
func (c *collector) line(e *event.Event, text []byte) error {
	switch {
	case e.Pos > c.facts.Hi || e.Pos < 1:
		return fmt.Errorf("segment: the event %d is not of the range from %d to %d", e.Pos, c.facts.Lo, c.facts.Hi)
	case e.Pos > c.facts.Lo && e.Pos != max(c.last, c.facts.Lo)+1,
		e.Pos <= c.facts.Lo && c.last > c.facts.Lo,
		e.Pos <= c.facts.Lo && e.Job == c.job && e.Pos <= c.last,
		e.Pos <= c.facts.Lo && e.Job != c.job && (e.Pos <= c.begun || c.index.jobs[e.Job] != nil):
		return fmt.Errorf("segment: the event %d after the event %d", e.Pos, max(c.last, c.facts.Lo))
	case e.Pos <= c.facts.Lo && !e.Kind().OfJob():
		return fmt.Errorf("segment: the event %d is carried in, and is of no job", e.Pos)
	case e.Kind().OfJob() == (e.Job == ""):
		return fmt.Errorf("segment: the event %d is %s of the job %q", e.Pos, e.Kind(), e.Job)
	}
	queue := ""
	if e.Kind().OfJob() {
		var err error
		if queue, err = c.index.add(e); err != nil {
			return err
		}
	}
	if c.summary != nil {
		c.summary.add(e, queue, e.Pos > c.facts.Lo)
	}
	if e.Pos > c.facts.Lo {
		c.leaves = append(c.leaves, proof.LeafHash(text[:len(text)-1]))
		if c.facts.FirstAt.IsZero() {
			c.facts.FirstAt = e.At
		}
		c.facts.LastAt = e.At
	} else {
		c.facts.Carried++
		if e.Job != c.job {
			c.job, c.begun = e.Job, e.Pos
		}
	}
	c.content.Write(text)
	c.last = e.Pos
	c.lines++
	return nil
}

// nextMember ends a member, which begins at this offset of the file.
func (c *collector) nextMember(offset int64) error {
	if len(c.leaves) > 0 {
		hash, err := proof.BlockHash(c.leaves)
		if err != nil {
			return err
		}
		c.facts.Blocks = append(c.facts.Blocks, hash)
		c.leaves = c.leaves[:0]
	}
	c.index.offsets = append(c.index.offsets, offset)
	c.lines = 0
	return nil
}

// complete ends the file.
func (c *collector) complete() error {
	if c.last != c.facts.Hi || c.lines != 0 {
		return fmt.Errorf("segment: the last event is %d, and the range ends with %d", c.last, c.facts.Hi)
	}
	c.facts.Jobs = int64(len(c.index.jobs))
	c.content.Sum(c.facts.Content[:0])
	return nil
}

// parts returns the parts of the file that was read.
func (c *collector) parts() *Parts {
	x := c.index.index(&c.facts)
	first, last := "", ""
	if jobs := x.Jobs(); jobs > 0 {
		first, last = x.id(0), x.id(jobs-1)
	}
	return &Parts{index: x.Encode(nil), summary: c.summary.encode(&c.facts, first, last)}
}
