package many

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Printer prints what commands write, each whole once it has ended, so that the outputs of commands that run
// at the same time do not mix. Until then an output is in memory, and in a file of TMPDIR without a name if
// it is large. Commands are known by their places, from 0 on.
type Printer struct {
	// Out and Err get the outputs, one at a time. They may take their time: the commands do not wait.
	Out, Err io.Writer
	Keep     bool // in the order of the places

	memory atomic.Int64 // bytes in memory, of all outputs

	mu     sync.Mutex
	more   sync.Cond
	open   map[int]*output // begun, and not printed
	ready  []int           // with Keep nil: ended and not printed
	ended  map[int]bool    // with Keep: ended or left out, and not printed
	next   int             // with Keep: the place that is printed next
	closed bool
	err    error
	over   chan struct{}
}

// output is what one command wrote.
type output struct{ streams [2]spool }

// Start starts printing.
func (p *Printer) Start() {
	p.more.L = &p.mu
	p.open, p.ended, p.over = make(map[int]*output), make(map[int]bool), make(chan struct{})
	go p.run()
}

// Begin returns writers for the stdout and the stderr of a command. What an earlier attempt wrote is dropped.
func (p *Printer) Begin(place int) (stdout, stderr io.Writer) {
	o := &output{[2]spool{{memory: &p.memory}, {memory: &p.memory}}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[place].drop()
	p.open[place] = o
	return &o.streams[0], &o.streams[1]
}

// End says that a command has ended, or will not run: what it wrote, if anything, is printed in its turn.
func (p *Printer) End(place int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Keep {
		p.ended[place] = true
	} else {
		p.ready = append(p.ready, place)
	}
	p.more.Signal()
}

// Close waits until all that has ended is printed, with Keep past those that have not, and returns the first
// error.
func (p *Printer) Close() error {
	p.mu.Lock()
	p.closed = true
	p.more.Signal()
	p.mu.Unlock()
	<-p.over
	for _, o := range p.open {
		o.drop()
	}
	return p.err
}

// failed returns the first error so far.
func (p *Printer) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Printer) run() {
	defer close(p.over)
	for {
		o, ok := p.wait()
		if !ok {
			return
		}
		for i, to := range []io.Writer{p.Out, p.Err} {
			if o == nil {
				break
			}
			err := p.failed()
			if err == nil {
				err = o.streams[i].copyTo(to)
			}
			p.mu.Lock()
			p.err = cmp.Or(p.err, err)
			p.mu.Unlock()
		}
		o.drop()
	}
}

// wait returns the next output to print, nil if that command wrote nothing; false if there is no more.
func (p *Printer) wait() (o *output, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		place := -1
		switch {
		case len(p.ready) > 0:
			place, p.ready = p.ready[0], p.ready[1:]
		case p.ended[p.next]:
			place = p.next
		case p.closed && len(p.ended) > 0:
			for at := range p.ended {
				if place < 0 || at < place {
					place = at
				}
			}
		case p.closed:
			return nil, false
		}
		if place >= 0 {
			if p.Keep {
				delete(p.ended, place)
				p.next = place + 1
			}
			o = p.open[place]
			delete(p.open, place)
			return o, true
		}
		p.more.Wait()
	}
}

const (
	maxInMemory    = 64 << 10 // of one stream
	maxAllInMemory = 32 << 20
)

// spool keeps one stream.
type spool struct {
	memory *atomic.Int64
	buffer bytes.Buffer
	file   *os.File // what came after the buffer; nil: nothing
	err    error
}

func (s *spool) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n := int64(len(b))
	if s.file == nil && s.buffer.Len()+len(b) <= maxInMemory {
		if s.memory.Add(n) <= maxAllInMemory {
			return s.buffer.Write(b)
		}
		s.memory.Add(-n)
	}
	if s.file == nil {
		if s.file, s.err = os.CreateTemp("", "jobledger-run"); s.err == nil {
			s.err = os.Remove(s.file.Name())
		}
	}
	if s.err == nil {
		_, s.err = s.file.Write(b)
	}
	return len(b), s.err
}

// copyTo writes all of it to w.
func (s *spool) copyTo(w io.Writer) error {
	if s.buffer.Len() > 0 {
		if _, err := w.Write(s.buffer.Bytes()); err != nil {
			return err
		}
	}
	if s.file != nil && s.err == nil {
		if _, s.err = s.file.Seek(0, io.SeekStart); s.err == nil {
			if _, err := io.Copy(w, s.file); err != nil {
				return err
			}
		}
	}
	if s.err != nil {
		return fmt.Errorf("an output is not complete: %w", s.err)
	}
	return nil
}

func (o *output) drop() {
	if o == nil {
		return
	}
	for i := range o.streams {
		s := &o.streams[i]
		s.memory.Add(-int64(s.buffer.Len()))
		if s.file != nil {
			_ = s.file.Close()
		}
		s.buffer, s.file = bytes.Buffer{}, nil
	}
}
