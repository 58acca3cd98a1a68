//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// TestSchedulesRecipes runs the scripts that the page about schedules marks as recipes, one after the other
// in an empty folder. A script may end with "nothing there".
func TestSchedulesRecipes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine")
	}
	folder := t.TempDir()
	recipes := strings.Split(readPage(t, "docs/schedules.md"), "<!-- recipe -->\n```sh\n")[1:]
	for _, recipe := range recipes {
		script, _, _ := strings.Cut(recipe, "```")
		c := exec.Command("sh", "-ec", script)
		c.Dir, c.Env = folder, append(os.Environ(), "JOBLEDGER_DB=", "PWD="+folder)
		out, err := c.CombinedOutput()
		if err != nil && c.ProcessState.ExitCode() != cli.ExitNothing {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
	list := site{TB: t, dir: folder}.command("list", "-q", "days", "--json")
	if got, err := list.Output(); err != nil || strings.Count(string(got), "\n") != 31 {
		t.Errorf("the jobs of January: %v, got %s", err, got)
	}
	if len(recipes) < 4 {
		t.Errorf("the page has %d recipes, want at least 4", len(recipes))
	}
}

// TestDocsMigrateFrom runs the scripts of the page, the first of which replaces a line of a crontab.
func TestDocsMigrateFrom(t *testing.T) {
	t.Parallel()
	m := migrants{t, t.TempDir()}
	for i, script := range strings.Split(readPage(t, "docs/migrate-from.md"), "```sh\n")[1:] {
		script, _, _ = strings.Cut(script, "```")
		if out := m.must(script); i == 0 && !strings.Contains(out, "backup of all\n") {
			t.Errorf("%s printed %s", script, out)
		}
	}
	m.must("jobledger verify")
}
