package ledger_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// TestPostgresUnresponsiveServerIsAbandoned: a connection whose peer stops reading without closing it is
// replaced by another one. A relay that stops reading needs no rights over the machine's network, and looks
// to the kernel like a dead host.
func TestPostgresUnresponsiveServerIsAbandoned(t *testing.T) {
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
