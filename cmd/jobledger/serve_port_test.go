//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// A server without --listen has the port that it had before, another one where that is in use, which it then
// has again too, and a free one where nothing can be remembered.
func TestServeKeepsItsPort(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begin := func(s site, words ...string) (address, said string, end func()) {
		server, address := s.serve(words...)
		s.eventually("the login link", func() bool { return strings.Contains(server.said.String(), "once: http") })
		return address, server.said.String(), func() {
			server.signal(syscall.SIGTERM)
			server.wantExit(cli.ExitOK)
		}
	}
	first, said, end := begin(s)
	if strings.Contains(said, "port") {
		t.Errorf("the first time: %s", said)
	}
	_, port, _ := net.SplitHostPort(first)
	if !strings.Contains(said, "http://jobledger.localhost:"+port+"/login#") {
		t.Errorf("the link is not at port %s: %s", port, said)
	}
	second, said, endSecond := begin(s) // at the same time
	if second == first || !strings.Contains(said, "port "+port+", which the ledger had before, is in use") {
		t.Errorf("a second server at %s: %s", second, said)
	}
	end()
	endSecond()
	if again, said, end := begin(s); again != first || strings.Contains(said, "in use") {
		t.Errorf("again: at %s, not %s: %s", again, first, said)
		end()
	} else {
		end()
	}
	l, err := net.Listen("tcp", first) // another program
	s.ok(err)
	again, said, end := begin(s)
	if again != second || !strings.Contains(said, "port "+port+" is in use") {
		t.Errorf("next to another program: at %s, not %s: %s", again, second, said)
	}
	end()
	s.ok(l.Close())
	if free, _, end := begin(s, "--listen", "127.0.0.1:0"); free == first || free == second {
		t.Errorf("--listen 127.0.0.1:0 is at %s", free)
		end()
	} else {
		end()
	}
	if !ledgertest.All() {
		return
	}

	other := site{TB: t, dir: t.TempDir(), env: []string{"XDG_STATE_HOME=" + s.path("state")}}
	other.run("init")
	at, _, end := begin(other)
	if at == first || at == second {
		t.Errorf("another ledger is at %s", at)
	}
	end()

	// What is remembered is of no harm where it cannot be read or written.
	files, err := filepath.Glob(s.path("state/jobledger/serve/*.ports"))
	if s.ok(err); len(files) != 2 {
		t.Fatalf("files %v", files)
	}
	for _, file := range files {
		s.ok(os.WriteFile(file, []byte("0\n99999\nx\n-1\n\n"), 0o600))
	}
	if at, said, end := begin(s); at == "" || strings.Contains(said, "in use") {
		t.Errorf("with a file that says nothing: %s", said)
	} else {
		end()
	}
	none := site{TB: t, dir: s.dir, env: []string{"XDG_STATE_HOME=/dev/null/none"}}
	if at, said, end := begin(none); at == "" || strings.Contains(said, "in use") {
		t.Errorf("where nothing can be kept: %s", said)
	} else {
		end()
	}
}
