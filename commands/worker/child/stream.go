//go:build unix

package child

import (
	"cmp"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	drainGrace = 200 * time.Millisecond // how long another process may hold a pipe open after the command's end
	drainBytes = 1 << 20                // the most that is read after that; no pipe holds more
)

// stream reads one output of a command, retains a part of it and passes all of it on.
type stream struct {
	r       *os.File
	keep    io.Writer
	through io.Writer // nil: nowhere
	done    chan struct{}
}

// newStream starts to read r, until its end or until finish.
func newStream(r *os.File, keep, through io.Writer) *stream {
	s := &stream{r: r, keep: keep, through: through, done: make(chan struct{})}
	go s.copy()
	return s
}

// finish waits for the end of the output after the command has ended. A process that still holds the pipe
// open delays it by drainGrace at most, and what the pipe holds by then is read.
func (s *stream) finish() {
	_ = s.r.SetReadDeadline(time.Now().Add(drainGrace))
	<-s.done
	_ = s.r.Close()
}

func (s *stream) copy() {
	defer close(s.done)
	buf := make([]byte, 32<<10)
	var err error
	for err == nil {
		_, err = s.read(s.r, buf)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.r.SetReadDeadline(time.Time{}) // otherwise nothing could be read
		rest := atOnce{s.r}
		for n, left := 0, drainBytes; left > 0; left -= n {
			if n, err = s.read(rest, buf); err != nil {
				break
			}
		}
	}
	if f, ok := s.through.(interface{ Flush() error }); ok {
		_ = f.Flush()
	}
}

// read moves one piece. After an error of through nothing is passed on, but reading continues: otherwise the
// command would block, or die of SIGPIPE, when the worker's own output is closed.
func (s *stream) read(r io.Reader, buf []byte) (int, error) {
	n, err := r.Read(buf)
	_, _ = s.keep.Write(buf[:n])
	if s.through != nil && n > 0 {
		if _, err := s.through.Write(buf[:n]); err != nil {
			s.through = nil
		}
	}
	return n, err
}

// atOnce reads what a pipe holds and never waits for more. The read deadline of the pipe must not have
// passed.
type atOnce struct{ pipe *os.File }

func (a atOnce) Read(buf []byte) (n int, err error) {
	conn, err := a.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	refused := conn.Read(func(fd uintptr) bool {
		for n, err = unix.Read(int(fd), buf); err == unix.EINTR; {
			n, err = unix.Read(int(fd), buf)
		}
		return true // also for EAGAIN: it is empty
	})
	if err = cmp.Or(refused, err); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
