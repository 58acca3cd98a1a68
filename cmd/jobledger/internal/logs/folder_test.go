package logs

import (
	"testing"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

func TestFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/ada")
	for path, want := range map[string]string{
		"/srv/jobs.db":                           "/srv/jobs.db.logs",
		"postgres://me@host:5432/jobs":           "/home/ada/.local/state/jobledger/jobs",
		"postgres://me@host:5432/jobs?schema=b":  "/home/ada/.local/state/jobledger/jobs.b",
		"postgres://me@host:5432/..":             "/home/ada/.local/state/jobledger/_",
		"postgres://me@host:5432/..%2F..%2Fetc":  "/home/ada/.local/state/jobledger/%2F..%2Fetc",
		"postgres://me@/jobs?host=%2Frun&port=1": "/home/ada/.local/state/jobledger/jobs",
	} {
		if got, err := Folder(path); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
	t.Setenv("XDG_STATE_HOME", "/state")
	if got, err := Folder("postgres://me@host:5432/jobs"); err != nil || got != "/state/jobledger/jobs" {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "")
	if got, err := Folder("postgres://me@host:5432/jobs"); err == nil {
		t.Errorf("without a home: %s", got)
	}
}
