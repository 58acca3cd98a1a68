package cli

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

var somePages = fstest.MapFS{
	"docs/backup.md": {Data: []byte("# Backup: how to keep a copy\n\nText.\n")},
	"docs/views.md":  {Data: []byte("# Views: SQL\n")},
	"docs/notes.txt": {Data: []byte("no page")},
}

func TestTopics(t *testing.T) {
	topics, err := (&Program{Docs: somePages}).Topics()
	if err != nil || len(topics) != 2 || topics[0].Name != "backup" ||
		topics[0].Summary != "how to keep a copy" || !strings.HasSuffix(topics[0].Text, "\n\nText.\n") {
		t.Errorf("got %q, %v", topics, err)
	}
	if topics, err := (&Program{}).Topics(); err != nil || len(topics) != 0 {
		t.Errorf("without pages: got %q, %v", topics, err)
	}
}

func TestPager(t *testing.T) {
	t.Setenv("LESS", "")
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	for _, name := range []string{"less", "more"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("less"); err != nil {
		t.Skipf("this system finds programs in another way: %v", err)
	}
	tests := []struct{ value, want string }{{"unset", "less"}, {"", ""}, {"more -s", "more -s"}, {"missing", ""}}
	for _, tt := range tests {
		t.Setenv("PAGER", tt.value)
		if tt.value == "unset" {
			if err := os.Unsetenv("PAGER"); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if c := Pager(); c != nil {
			got = strings.Join(append([]string{filepath.Base(c.Path)}, c.Args[1:]...), " ")
		}
		if got != tt.want {
			t.Errorf("PAGER %q: got %q, want %q", tt.value, got, tt.want)
		}
	}
}

// TestTopicWithoutPager shows a page on a terminal where the pager fails.
func TestTopicWithoutPager(t *testing.T) {
	for _, command := range []string{"", "false", "missing"} {
		t.Setenv("PAGER", command)
		var out bytes.Buffer
		p := &Program{Stdout: bufio.NewWriter(&out), StdoutTerminal: true, Docs: somePages}
		if err := p.Help("views", nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Flush(); err != nil || out.String() != "# Views: SQL\n" {
			t.Errorf("PAGER %q: got %q, %v", command, out.String(), err)
		}
	}
}
