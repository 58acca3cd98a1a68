package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/commands"
	"jobledger/commands/worker/attemptlog"
)

func TestLogsEscapedOnTerminalOnly(t *testing.T) {
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	j := s.claim("w1", "mail")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder, err := logs.Folder(s.Store.Path())
	if err != nil {
		t.Fatal(err)
	}
	path := attemptlog.File(folder, j.ID, 1, false)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	const text = "é\x1b[2J\ta\nb\xff\r\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, why := s.run(0, "logs", string(j.ID)); code != 0 || out != text {
		t.Errorf("piped: %d, %q, %s", code, out, why)
	}
	if code, out, why := s.run(80, "logs", string(j.ID)); code != 0 || out != "é\\x1b[2J\ta\nb\\xff\\r\n" {
		t.Errorf("on a terminal: %d, %q, %s", code, out, why)
	}
	if code, out, why := s.run(0, "logs", "--json", string(j.ID)); code != 0 || out != `{"job":"`+string(j.ID)+
		`","attempt":1,"stream":"stdout","path":"`+path+`","text":null,"text_base64":"w6kbWzJKCWEKYv8NCg==","id":"`+
		string(j.ID)+`","check":"unchecked"}`+"\n" {
		t.Errorf("as JSON: %d, %s, %s", code, out, why)
	}
}

func TestLogsFollowEndsWithAttempt(t *testing.T) {
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	j := s.claim("w1", "mail")
	go func() {
		time.Sleep(150 * time.Millisecond) // both orders are valid; usually it ends while it is followed
		_, _ = s.Apply(t.Context(), "worker:w1", j.ID, commands.Release{Token: j.Token})
	}()
	if code, _, why := s.run(0, "logs", "-f", string(j.ID)); code != cli.ExitNothing {
		t.Errorf("exit code %d, %s", code, why)
	}
}
