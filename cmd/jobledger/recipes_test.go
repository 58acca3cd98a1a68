//go:build unix

package main

import (
	"os"
	"os/exec"
	"slices"
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

// TestDocsMigrateFrom runs the scripts of the page, one after the other in an empty folder, and the command
// that each replaces, if its program is installed.
func TestDocsMigrateFrom(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this machine")
	}
	folder := t.TempDir()
	run := func(script string) []string {
		t.Helper()
		c := exec.Command("sh", "-ec", script)
		c.Dir, c.Env = folder, append(os.Environ(), "JOBLEDGER_DB=", "PWD="+folder)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v, %s", script, err, out)
		}
		return slices.Sorted(strings.Lines(string(out)))
	}
	scripts := strings.Split(readPage(t, "docs/migrate-from.md"), "```sh\n")[1:]
	for _, script := range scripts {
		script, _, _ = strings.Cut(script, "```")
		before, _, _ := strings.Cut(script, "\n")
		printed := strings.Join(run(script), "")
		switch _, piped, _ := strings.Cut(before, "# before: printf"); {
		case strings.Contains(before, "crontab") && !strings.Contains(printed, "backup of all\n"),
			strings.Contains(before, " at ") && !strings.HasSuffix(printed, "report"):
			t.Errorf("%s printed %s", script, printed)
		case piped != "":
			if _, err := exec.LookPath("parallel"); err != nil && os.Getenv("CI") != "true" {
				t.Log(err)
				continue
			}
			lines := run("printf" + piped)
			for _, line := range lines { // several commands at once have their jobs before their lines
				if strings.Count(printed, "] "+line) != 1 || len(lines) != 3 {
					t.Errorf("before: %q, after: %s", lines, printed)
				}
			}
		}
	}
	if len(scripts) < 3 {
		t.Errorf("the page has %d scripts", len(scripts))
	}
	site{TB: t, dir: folder}.run("verify")
}
