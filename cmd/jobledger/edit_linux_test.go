package main

import (
	"strings"
	"testing"
)

// On a terminal, edit without a flag opens an editor on the command of a job: an argument a line, or the text
// for the shell; or on its payload.
func TestEditOpensAnEditor(t *testing.T) {
	s := newSite(t)
	edits := func(editor, want, job string) {
		t.Helper()
		t.Setenv("VISUAL", editor)
		if said := s.onTerminal("", "edit", job); !strings.Contains(said, want) {
			t.Errorf("%s: %s", editor, said)
		}
	}
	has := func(job, want string) {
		t.Helper()
		if shown := s.run("show", job); !strings.Contains(shown, want) {
			t.Errorf("want %s in %s", want, shown)
		}
	}
	plain := s.enqueue("one")
	edits("sed -i s/one/two/", "is queued", plain)
	has(plain, "payload   two")
	carried := s.run("run", "-b", "--", "echo", "one", "a b")
	edits("sed -i s/one/two/", "is queued", carried)
	has(carried, "echo two 'a b'")
	edits("true", "unchanged", carried)
	edits("false", "nothing was changed", carried)
	edits("sed -i d", "a command is missing", carried)
	has(carried, "echo two 'a b'")
	shell := s.run("run", "-b", "--sh", "echo one | cat", "arg")
	edits("sed -i s/one/two/", "is queued", shell)
	has(shell, "/bin/sh -c 'echo two | cat' sh arg")
	s.run("cancel", shell)
	edits("true", "it is cancelled", shell)
	s.run("verify")
}
