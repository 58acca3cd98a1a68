package view

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"jobledger/commands/archive"
	"jobledger/ledger"
)

const (
	wholeKept    = 10 * time.Minute // for so long a copy stays after it was last asked
	wholeForward = 10               // a copy is used for so many times as long as it took to be made
)

// Whole answers questions about what has left a ledger: from a copy in a temporary folder, without payloads
// and results, that is as if nothing had left. It costs the whole history to make one. So there is one at a
// time, for all who ask, which is made again only when it is older than ten times as long as that took, and
// something happened meanwhile. It is safe for concurrent use.
type Whole struct {
	store *ledger.Store
	dir   string
	ctx   context.Context // of copies that are made
	stop  context.CancelFunc

	mu     sync.Mutex
	now    *wholeCopy // the newest that could be made; nil: none
	making *making    // nil: none is made
	idle   *time.Timer
	closed bool
}

// wholeCopy is a copy. Its users and Whole.now hold it; who is the last one to let go removes it.
type wholeCopy struct {
	*ledger.Store
	folder string
	pos    int64     // of the last event
	last   []byte    // which that is
	until  time.Time // when it is too old
	held   int
}

// making is the making of a copy.
type making struct {
	done chan struct{}
	copy *wholeCopy // once it is done, without an error; it is held for each of those who wait
	err  error
	wait int // how many wait
}

// NewWhole returns a Whole of store, the archive of which is in dir. Close it.
func NewWhole(store *ledger.Store, dir string) *Whole {
	w := &Whole{store: store, dir: dir}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// Close ends the making of a copy, and removes the copy once it is not read any more.
func (w *Whole) Close() {
	w.stop()
	w.mu.Lock()
	m := w.making
	w.closed = true
	w.mu.Unlock()
	if m != nil {
		<-m.done
	}
	w.drop()
}

// Use calls fn with a copy, once there is one. Where ctx ends before, the copy is still made, for those who
// ask later. Errors: that of fn; [archive.ErrMissing]; segment.ErrDamaged; that of ctx.
func (w *Whole) Use(ctx context.Context, fn func(*ledger.Store) error) error {
	c, err := w.take(ctx)
	if err != nil {
		return err
	}
	defer w.release(c)
	return fn(c.Store)
}

// take returns a copy that is held for the caller.
func (w *Whole) take(ctx context.Context) (*wholeCopy, error) {
	w.mu.Lock()
	c := w.now
	if c != nil {
		c.held++
	}
	w.mu.Unlock()
	if c != nil {
		good, err := w.good(ctx, c)
		if good && err == nil {
			w.keep()
			return c, nil
		}
		w.release(c)
		if err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, ledger.ErrClosed
	}
	m := w.making
	if m == nil {
		m = &making{done: make(chan struct{})}
		w.making = m
		go w.makeCopy(m)
	}
	m.wait++
	w.mu.Unlock()
	select {
	case <-m.done:
		return m.copy, m.err
	case <-ctx.Done():
	}
	w.mu.Lock()
	m.wait--
	made := w.making != m && m.err == nil
	w.mu.Unlock()
	if made { // at the same moment
		w.release(m.copy)
	}
	return nil, context.Cause(ctx)
}

// good reports whether c still has what the ledger has, but for what happened since, which may be some.
func (w *Whole) good(ctx context.Context, c *wholeCopy) (good bool, err error) {
	err = w.store.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if good = err == nil && (tail == c.pos || tail > c.pos && time.Now().Before(c.until)); !good {
			return err
		}
		last, err := leafAt(ctx, tx, c.pos)
		good = bytes.Equal(last, c.last)
		return err
	})
	return good, err
}

// leafAt returns the text of the event at pos; nil if there is none.
func leafAt(ctx context.Context, tx *ledger.Tx, pos int64) ([]byte, error) {
	e, found, err := tx.EventAt(ctx, pos)
	if err != nil || !found {
		return nil, err
	}
	return e.AppendLeaf(nil), nil
}

// keep has the copy stay for a while.
func (w *Whole) keep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle == nil {
		w.idle = time.AfterFunc(wholeKept, w.drop)
	} else {
		w.idle.Reset(wholeKept)
	}
}

// drop removes the copy, once it is not read any more.
func (w *Whole) drop() {
	w.mu.Lock()
	c := w.now
	w.now = nil
	if w.idle != nil {
		w.idle.Stop()
	}
	w.mu.Unlock()
	if c != nil {
		w.release(c)
	}
}

func (w *Whole) release(c *wholeCopy) {
	w.mu.Lock()
	c.held--
	last := c.held == 0
	w.mu.Unlock()
	if last {
		c.remove()
	}
}

func (c *wholeCopy) remove() {
	if c.Store != nil {
		_ = c.Close() // what it holds is removed
	}
	_ = os.RemoveAll(c.folder)
}

// makeCopy makes a copy, and gives it to those who wait.
func (w *Whole) makeCopy(m *making) {
	w.mu.Lock()
	before := w.now // so that there are not two of them on the disk, unless one is being read
	w.now = nil
	w.mu.Unlock()
	if before != nil {
		w.release(before)
	}
	c, err := w.copy()
	w.mu.Lock()
	m.copy, m.err = c, err
	if err == nil {
		c.held += m.wait + 1
		w.now = c
	}
	w.making = nil
	close(m.done)
	w.mu.Unlock()
	if err == nil {
		w.keep()
	}
}

// copy makes a copy.
func (w *Whole) copy() (c *wholeCopy, err error) {
	begun := time.Now()
	c = new(wholeCopy)
	if c.folder, err = os.MkdirTemp("", "jobledger-whole-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.remove()
			c = nil
		}
	}()
	if c.Store, err = archive.OpenCopy(w.ctx, w.store, w.dir, c.folder, false); err != nil {
		if errors.Is(err, context.Canceled) {
			err = ledger.ErrClosed
		}
		return c, err
	}
	err = c.Read(w.ctx, func(tx *ledger.Tx) (err error) {
		if c.pos, err = tx.Tail(w.ctx); err == nil {
			c.last, err = leafAt(w.ctx, tx, c.pos)
		}
		return err
	})
	c.until = time.Now().Add(wholeForward * time.Since(begun))
	return c, err
}
