package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
)

// Several ledgers in one process each have their own pages and login, and one overview shows all of them.
func TestServeSeveralLedgers(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir()) // where ports are remembered
	var args []string
	for i, name := range []string{"orders", "mail"} {
		s := newScenario(t)
		for range i + 1 {
			s.enqueue(commands.Enqueue{Queue: name, Payload: []byte("a")})
		}
		args = append(args, "--ledger", name+"="+s.Store.DSN())
	}
	links := make(chan string, 2)
	read, write := io.Pipe()
	go func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if _, link, ok := strings.Cut(lines.Text(), "once: "); ok {
				links <- link
			}
		}
	}()
	p := &program{&cli.Program{Stdout: bufio.NewWriter(io.Discard), Stderr: write, Now: noon}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- p.run(ctx, append([]string{"serve"}, args...)) }()
	seen := map[string]bool{}
	for range 2 {
		link := <-links
		base, _, _ := strings.Cut(link, "/login#")
		base = strings.Replace(base, "jobledger.localhost", "127.0.0.1", 1)
		one := make(chan string, 1)
		one <- link
		client := &http.Client{Jar: loggedIn(t, servedStore{base: base, links: one})}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/ledgers", nil)
		check(t, err)
		answer, err := client.Do(r)
		check(t, err)
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		_ = answer.Body.Close()
		client.CloseIdleConnections()
		if !strings.Contains(string(text), ">◌ as of ") {
			t.Errorf("the overview of %s does not say of when it is", base)
		}
		for i, name := range []string{"orders", "mail"} {
			rows := tableOf(t, string(text), `aria-label="`+name+`"`)
			if rows[1][0] != name || rows[1][1] != fmt.Sprint(i+1) {
				t.Errorf("%s in the overview of %s: %v", name, base, rows)
			}
		}
		seen[base] = true
	}
	if len(seen) != 2 {
		t.Errorf("the ledgers are at %v", seen)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("serve ended with %d", code)
	}
	_ = write.Close()
}
