//go:build unix

package child

import (
	"encoding/json"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A worker and a supervising parent talk over a socket pair, one JSON object after the other: a command and then
// any number of orders in one direction, a started and then an ended in the other. Both are the same program, so the
// messages need no version.

// command says what to run. Its texts are bytes, since JSON alters a string that is not UTF-8.
type command struct {
	Path, Dir  []byte
	Args, Env  [][]byte
	KillAfter  time.Duration
	MaxRuntime time.Duration
	Lease      lease
}

// order changes what becomes of a running command.
type order struct {
	Lease *lease `json:",omitempty"` // hold these deadlines instead
	Stop  bool   `json:",omitempty"`
	Kill  bool   `json:",omitempty"`
}

// started answers a command: it runs, or why not.
type started struct {
	Pid   int           `json:",omitempty"`
	Errno syscall.Errno `json:",omitempty"`
	Chdir bool          `json:",omitempty"` // it is the directory that is wrong
	Late  bool          `json:",omitempty"` // it was not even tried, because it would have to end at once
}

// ended is the last message.
type ended struct {
	Status *syscall.WaitStatus // of the command itself; null: it could not be killed
	Cause  Cause
	Left   int
}

// instant is a time in nanoseconds on a clock that all processes of this machine share, that nobody can set, and
// that goes on while the machine sleeps where the system has such a clock. 0 means never.
type instant int64

// instantOf translates a deadline. It reads the shared clock first, so that a process that is frozen between the
// two readings finds the deadline too early and never too late.
func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	now := clock()
	return max(1, now.add(time.Until(t)))
}

func (i instant) add(d time.Duration) instant { return i + instant(d) }
func (i instant) passed(now instant) bool     { return i != 0 && now >= i }

// lease is Deadlines as both processes understand it.
type lease struct{ Term, Kill instant }

func leaseOf(l Deadlines) lease { return lease{Term: instantOf(l.Term), Kill: instantOf(l.Kill)} }

// conn is one end of the conversation.
type conn struct {
	file *os.File
	mu   sync.Mutex // held while sending
	dec  *json.Decoder
}

func newConn(file *os.File) *conn { return &conn{file: file, dec: json.NewDecoder(file)} }

// send writes one message, or gives up after a second: the other end may be frozen, and its buffer full.
func (c *conn) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.file.SetWriteDeadline(time.Now().Add(time.Second))
	_, err = c.file.Write(text)
	return err
}

func (c *conn) receive(message any) error {
	err := c.dec.Decode(message)
	if err == io.EOF {
		return io.ErrUnexpectedEOF // neither end hangs up before it has said that it is done
	}
	return err
}

func (c *conn) close() error { return c.file.Close() }

// socketPair returns both ends of a conversation; no command that is started inherits one by accident.
func socketPair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		_ = unix.SetNonblock(fd, true) // so that a read or write on it can have a deadline
	}
	return os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "worker"), nil
}
