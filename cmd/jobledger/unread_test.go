//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// A worker whose stdout and stderr are a full pipe that is not read continues: it sends heartbeats, ends its
// jobs and exits.
func TestWorkUnreadOutputDelaysNoJob(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	const flood = "head -c 500000 /dev/zero | tr '\\0' x; head -c 500000 /dev/zero | tr '\\0' y >&2"
	noisy, failing, held := s.enqueue(flood), s.enqueue("exit 7"), s.enqueue(flood+"; sleep 3")
	r, w := fullPipe(s)
	defer r.Close()
	cmd := s.command("work", "-q", "mail", "--drain", "--lease", "3s", "--", "sh")
	cmd.Stdout, cmd.Stderr = w, w
	s.ok(cmd.Start())
	_ = w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("it waits for a reader:\n%s", s.run("list"))
	}
	for job, want := range map[string]string{noisy: "heartbeat succeeded", failing: "failed",
		held: "heartbeat succeeded"} {
		if got := s.events(job); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", job, got, want)
		}
	}
	if got := s.run("logs", noisy); len(got) != 500000 {
		t.Errorf("%d bytes of 500000 are kept", len(got))
	}
	s.run("verify")
}

// fullPipe returns a pipe that is full.
func fullPipe(s site) (r, w *os.File) {
	s.Helper()
	r, w, err := os.Pipe()
	s.ok(err)
	fd := int(w.Fd()) // makes the file blocking, as the worker gets it
	s.ok(syscall.SetNonblock(fd, true))
	for piece := make([]byte, 64<<10); len(piece) > 0; {
		if _, err := syscall.Write(fd, piece); err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	s.ok(syscall.SetNonblock(fd, false))
	return r, w
}
