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

// The worker and the supervising parent exchange JSON objects over a socket pair. The worker sends a command
// and then any number of orders. The parent answers with started and then reports, of which the last says how
// it ended. Both processes run the same program, so the messages have no version.

// command describes what to run. Its texts are bytes, since JSON changes a string that is not UTF-8.
type command struct {
	Path, Dir  []byte
	Args, Env  [][]byte
	Umask      *int `json:",omitempty"`
	KillAfter  time.Duration
	MaxRuntime time.Duration
	Lease      lease
	Keep       *keep `json:",omitempty"`
}

// keep is Keeper on its way to the supervising parent.
type keep struct {
	Args, Env [][]byte
	Every     time.Duration
}

// order changes how a running command goes on.
type order struct {
	Lease *lease `json:",omitempty"` // these deadlines replace the earlier ones
	Stop  bool   `json:",omitempty"`
	Kill  bool   `json:",omitempty"`
	Over  bool   `json:",omitempty"` // the lease is over, and not to be kept
}

// started answers a command: it runs, or why it does not.
type started struct {
	Pid   int           `json:",omitempty"`
	Errno syscall.Errno `json:",omitempty"`
	Chdir bool          `json:",omitempty"` // the directory does not exist
	Late  bool          `json:",omitempty"` // it was not started, because its lease had expired
}

// report is what the supervising parent sends after started: how things are, and in the end how they ended.
type report struct {
	Ended     *ended  `json:",omitempty"` // the last message
	CannotEnd *string `json:",omitempty"` // which process may not be signalled, and why; "": none any more
}

// ended is how the command ended.
type ended struct {
	Status *syscall.WaitStatus // of the command; null: it could not be killed
	Cause  Cause
	Left   int
	Cost   Cost
}

// instant is a time in nanoseconds on a clock that all processes of this machine share and that cannot be
// set. It continues while the machine sleeps, where the system has such a clock. 0 means never.
type instant int64

// instantOf translates a deadline. It reads the shared clock first, so that a process that is frozen between
// the two readings gets a deadline that is too early, never one that is too late.
func instantOf(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	now := clock()
	return max(1, now.add(time.Until(t)))
}

func (i instant) add(d time.Duration) instant { return i + instant(d) }
func (i instant) passed(now instant) bool     { return i != 0 && now >= i }

// lease is Deadlines on the shared clock.
type lease struct{ Term, Kill instant }

func leaseOf(l Deadlines) lease { return lease{Term: instantOf(l.Term), Kill: instantOf(l.Kill)} }

// conn is one end of the conversation.
type conn struct {
	file *os.File
	mu   sync.Mutex // held while sending
	dec  *json.Decoder
}

func newConn(file *os.File) *conn { return &conn{file: file, dec: json.NewDecoder(file)} }

// send writes one message. It gives up after a second: the other process may be frozen, and its buffer full.
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

// receive reads one message. Its end of file is always unexpected, since either side ends with a message.
func (c *conn) receive(message any) error {
	err := c.dec.Decode(message)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *conn) close() error { return c.file.Close() }

// socketPair returns both ends of a connection. They are close-on-exec, so that no other command inherits
// them.
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
