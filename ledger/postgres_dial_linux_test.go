package ledger_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// TestPostgresUnresponsiveServerIsAbandoned: a connection whose peer stops reading without closing it is
// replaced by another one. A relay that stops reading needs no rights over the machine's network, and looks
// to the kernel like a dead host.
func TestPostgresUnresponsiveServerIsAbandoned(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	server, err := url.Parse(dsn)
	must(t, err)
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer relay.Close()
	var deaf atomic.Bool // the next connection that receives a full buffer stops reading
	silent := make(chan struct{})
	go func() {
		for {
			client, err := relay.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = client.Close() })
			to, err := net.Dial("tcp", server.Host)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = to.Close() })
			go func() { _, _ = io.Copy(client, to) }()
			go func() {
				for buf := make([]byte, 4<<10); ; {
					n, err := client.Read(buf)
					if err != nil {
						_ = to.Close()
						return
					}
					if n == len(buf) && deaf.CompareAndSwap(true, false) { // in the middle of the body
						close(silent)
						return
					}
					if _, err := to.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	through := *server
	through.Host = relay.Addr().String()
	s := ledgertest.OpenAt(t, with(through.String(), "tcp_user_timeout=1000"))
	body := bytes.Repeat([]byte("x"), 16<<20) // more than the socket buffers hold
	put := func(pos int64) error {
		return s.Write(t.Context(), func(tx *ledger.Tx) error { return tx.PutBody(pos, nil, body) })
	}
	must(t, put(1))
	deaf.Store(true)
	if err := put(2); !errors.Is(err, ledger.ErrUnknown) { // COMMIT was queued after the body
		t.Errorf("a write: got %v, want ErrUnknown", err)
	}
	select {
	case <-silent:
	default:
		t.Error("the relay was never silent")
	}
	must(t, put(2))
	read(t, s, func(tx *ledger.Tx) error {
		n, err := number(t.Context(), tx, `SELECT count(*) FROM bodies`)
		if n != 2 {
			t.Errorf("%d bodies, want 2", n)
		}
		return err
	})
}

// TestPostgresHungBackendIsAbandoned: a process of the server that was stopped keeps no writer silent for
// ever. The writer reports it, and goes on with another.
func TestPostgresHungBackendIsAbandoned(t *testing.T) {
	t.Parallel()
	stop := func(t *testing.T, pid int64) (goOn func()) {
		must(t, syscall.Kill(int(pid), syscall.SIGSTOP))
		goOn = sync.OnceFunc(func() { _ = syscall.Kill(int(pid), syscall.SIGCONT) })
		t.Cleanup(goOn)
		return goOn
	}
	t.Run("between transactions", func(t *testing.T) {
		t.Parallel()
		s := onPostgres(t)
		s.SetServerAnswerTime(300 * time.Millisecond)
		s.SetLockWait(300 * time.Millisecond)
		var pid int64
		write(t, s, func(tx *ledger.Tx) (err error) {
			pid, err = backend(t.Context(), tx)
			return errors.Join(err, note(t.Context(), tx, "a"))
		})
		stop(t, pid)
		err := s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
		if !errors.Is(err, ledger.ErrBusy) || !strings.Contains(err.Error(), "its process may hang") {
			t.Errorf("got %v, want ErrBusy, and why", err)
		}
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "c") })
		wantActors(t, s, "a", "c")
	})
	t.Run("within one", func(t *testing.T) {
		t.Parallel()
		s := onPostgres(t)
		s.SetServerAnswerTime(300 * time.Millisecond)
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
		var once sync.Once
		goOn := func() {}
		write(t, s, func(tx *ledger.Tx) (err error) {
			once.Do(func() {
				var pid int64
				if pid, err = backend(t.Context(), tx); err == nil {
					goOn = stop(t, pid)
					time.AfterFunc(time.Second, goOn) // it has the lock until then
				}
			})
			_, askErr := number(t.Context(), tx, `SELECT count(*) FROM events`)
			return errors.Join(err, askErr, note(t.Context(), tx, "b"))
		})
		goOn()
		wantActors(t, s, "a", "b")
	})
}
