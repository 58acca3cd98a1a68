package jobcmd

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands/worker"
)

const (
	maxWait   = 5 * time.Second // how long one write may take before the reader counts as absent
	room      = 256 << 10       // bytes that wait
	pieceSize = 4 << 10         // bytes per write: a slow reader is not an absent one
)

// outlet passes what a worker prints to a terminal or a pipe that may have no reader. A writer waits until
// its bytes are passed on, so a slow reader slows it down. When one piece has taken longer than the patience,
// no writer waits until there is progress again: up to 256 KiB are kept, the rest is left out, and a line
// says how much.
type outlet struct {
	to       io.Writer
	program  string // whose name the line about what was left out begins with
	patience time.Duration

	mu      sync.Mutex
	queue   []byte
	in, out int64         // bytes taken and passed on
	begun   time.Time     // when the write under way began; zero: none is
	leftOut int64         // bytes, since the last line that said so
	running bool          // a goroutine passes on
	changed chan struct{} // closed at the next progress
	err     error         // of to; nothing is passed on after it
}

// newOutlet returns an outlet to w, to which nothing else should write meanwhile. Its own lines begin with
// the name of the program.
func newOutlet(w io.Writer, program string) *outlet {
	return &outlet{to: w, program: program, patience: maxWait, changed: make(chan struct{})}
}

// Write passes b on, or, if there is no reader, keeps it or drops it.
func (o *outlet) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitUntil(func() bool { return len(o.queue)+len(b) <= room })
	end, err := o.put(b)
	if err != nil {
		return 0, err
	}
	o.waitUntil(func() bool { return o.out >= end })
	return len(b), nil
}

// Messages returns a writer to the same outlet that never waits: for those who have more to do than to be
// read.
func (o *outlet) Messages() io.Writer { return messages{o} }

type messages struct{ o *outlet }

func (m messages) Write(b []byte) (int, error) {
	m.o.mu.Lock()
	defer m.o.mu.Unlock()
	if _, err := m.o.put(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Finish waits at most that long until everything is passed on, and reports whether it is.
func (o *outlet) Finish(most time.Duration) bool {
	late := time.After(most)
	for {
		o.mu.Lock()
		done, changed := o.out == o.in || o.err != nil, o.changed
		o.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		}
	}
}

// put queues b or leaves it out, and returns how many bytes are passed on when it is. o.mu is held.
func (o *outlet) put(b []byte) (end int64, err error) {
	if o.err != nil {
		return 0, o.err
	}
	if len(o.queue) > 0 && len(o.queue)+len(b) > room {
		o.leftOut += int64(len(b))
		return o.out, nil
	}
	o.queue = append(o.queue, b...)
	o.in += int64(len(b))
	if !o.running {
		o.running = true
		go o.pass()
	}
	return o.in, nil
}

// waitUntil waits until done, or until the reader seems absent. o.mu is held, but not while it waits.
func (o *outlet) waitUntil(done func() bool) {
	for !done() && o.err == nil && o.running {
		left := o.patience
		if !o.begun.IsZero() {
			left -= time.Since(o.begun)
		}
		if left <= 0 {
			return
		}
		changed := o.changed
		o.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		o.mu.Lock()
	}
}

// pass passes on what is queued, piece by piece, until nothing is.
func (o *outlet) pass() {
	piece := make([]byte, 0, pieceSize)
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil {
		if len(o.queue) == 0 && o.leftOut > 0 {
			note := fmt.Sprintf("\n%s: %d bytes were left out here, because there was no reader\n",
				o.program, o.leftOut)
			o.queue, o.leftOut = append(o.queue, note...), 0
			o.in += int64(len(note))
		}
		if len(o.queue) == 0 {
			break
		}
		piece = append(piece[:0], o.queue[:min(len(o.queue), pieceSize)]...)
		o.queue = append(o.queue[:0], o.queue[len(piece):]...)
		o.begun = time.Now()
		o.mu.Unlock()
		_, err := o.to.Write(piece)
		o.mu.Lock()
		o.begun, o.err = time.Time{}, err
		o.out += int64(len(piece))
		o.progress()
	}
	o.running = false
	o.progress()
}

// progress wakes those who wait. o.mu is held.
func (o *outlet) progress() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// PassOutputOn makes sure that neither the worker nor its jobs wait for ever for a reader of what they
// say. The caller calls finish at the end, after which messages go where they went before, if anybody reads
// there.
func PassOutputOn(p *cli.Program, command *worker.Command) (finish func()) {
	stderr := p.Stderr
	out, messages := newOutlet(command.Stdout, cli.ProgramName), newOutlet(stderr, cli.ProgramName)
	command.Stdout, command.Stderr, p.Stderr = out, messages, messages.Messages()
	return func() {
		const most = 2 * time.Second
		out.Finish(most)
		if p.Stderr = stderr; !messages.Finish(most) {
			p.Stderr = io.Discard
		}
	}
}

// Error gives a command that cannot be run the exit code that a shell would.
func Error(err error) error {
	if e, ok := errors.AsType[*worker.StartError](err); ok {
		return cli.WithHint(cli.Exitf(e.Code, "%w", e), "no job was harmed: what was claimed has been given back")
	}
	return err
}
