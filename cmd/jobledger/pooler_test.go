//go:build unix

package main

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// throughOne are commands that follow each other, by what they do to a ledger.
var throughOne = map[string][]string{
	"producers and workers": {
		"init", "enqueue -q a x", "enqueue -q a --jsonl -", "status", "work -q a --once -- true",
		"work -q a -j 2 --drain -- true", "wait -q a --timeout 10s", "enqueue -q a y", "claim -q a", "sweep",
		"pause -q a --reason r", "queues", "resume -q a", "limit -q a --running 2", "schedule list",
		"schedule set tick -q a --every 1h z", "schedule run tick", "cancel -q a --state queued", "verify",
	},
	"questions": {
		"init", "enqueue -q a --key k x", "work -q a --once -- true", "list", "show -q a --last", "why --key k",
		"history --key k", "attempts", "events", "logs --key k",
		"owner --key k --as-of now", "report taken --from -1h",
		"report depth --from -1h", "diff --from -1h", "workers --all", "retry --key k --succeeded", "verify",
	},
	"auditors": {
		"init", "seal --init --reason r", "enqueue -q a x", "work -q a --once -- true", "seal", "checkpoint",
		"witness", "export", "incident --from -1h --to now -o incident", "replay --as-of now --into copy.db",
		"archive --older-than 1h --archive archive", "erase -q a --last --reason r", "migrate", "rebuild", "verify",
	},
}

// With a pooler that has a single session to give, each command ends as it does without one: none waits for a
// session that another one of its own holds, which would take the 30 s of a connection.
func TestPostgresPoolerOfOneSession(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	direct := ledgertest.Postgres(t)
	pooled := func() string { return ledgertest.PgBouncer(t, direct, "session", "default_pool_size = 1") }
	var wg sync.WaitGroup
	defer wg.Wait()
	for what, commands := range throughOne {
		schema := strings.ReplaceAll(what, " ", "_")
		s := newServerSite(t, pooled()+"&schema="+schema)
		wg.Go(func() {
			for _, line := range commands {
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
				cmd := s.command(strings.Fields(line)...)
				limited := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...) // #nosec G204 -- this program
				limited.Dir, limited.Env, limited.Stdin = cmd.Dir, cmd.Env, strings.NewReader(`{"payload":"1"}`)
				said, err := limited.CombinedOutput()
				cancel()
				if code := limited.ProcessState.ExitCode(); code != cli.ExitOK && code != cli.ExitNothing {
					t.Errorf("jobledger %s: %v\n%s", line, err, said)
				}
			}
		})
	}
	s := newServerSite(t, pooled()+"&schema=served")
	token := strings.TrimSpace(s.run("token", "create", "all", "--access", "access", "--scope", "read",
		"--scope", "enqueue", "--queue", "*"))
	s.run("init")
	server, address := s.serve("--listen", "127.0.0.1:0", "--access", s.path("access"))
	var asking sync.WaitGroup
	for _, path := range []string{"jobs", "queues", "workers", "events", "status", "jobs"} {
		asking.Go(func() {
			for _, method := range []string{"GET", "POST", "GET"} {
				var body io.Reader
				if method == "POST" {
					path, body = "jobs", strings.NewReader(`{"queue":"a","payload":"x"}`)
				}
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/api/v1/"+path, body)
				s.ok(err)
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(r)
				s.ok(err)
				said, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode/100 != 2 {
					t.Errorf("%s %s: %s %s", method, path, answer.Status, said)
				}
			}
		})
	}
	asking.Wait()
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
	s.run("verify")
}
