//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// migrants is a shell in an empty folder that is the home of its user too.
type migrants struct {
	*testing.T
	folder string
}

func (m migrants) run(line string) (out string, err error) {
	m.Helper()
	c := exec.CommandContext(m.Context(), "sh", "-ec", line)
	c.Dir = m.folder
	c.Env = append(os.Environ(), "JOBLEDGER_DB=", "JOBLEDGER_START=no", "XDG_STATE_HOME=", "PWD="+m.folder,
		"HOME="+m.folder, "TMPDIR="+m.folder, "TS_SOCKET="+filepath.Join(m.folder, "tsp"), "LC_ALL=C")
	text, err := c.CombinedOutput()
	return string(text), err
}

func (m migrants) must(line string) string {
	m.Helper()
	out, err := m.run(line)
	if err != nil {
		m.Errorf("%s: %v\n%s", line, err, out)
	}
	return out
}

// job is one that the line can be about, in place of JOB.
func (m migrants) job(line string) string {
	m.Helper()
	word := func(text string) bool { return strings.Contains(line, "jobledger "+text) }
	newest := func(script string) string {
		m.must(script)
		lines := strings.Fields(m.must("jobledger show --last --json | head -1 | jq -r .id"))
		return lines[len(lines)-1]
	}
	switch {
	case word("retry"):
		return newest("jobledger run -b false 2>&1; jobledger work --commands -q bg --drain 2>&1")
	case word("logs"), word("show"), word("wait JOB"):
		return newest("jobledger run echo did")
	case word("unblock"):
		return newest("jobledger run -b --hold true")
	case word("wait -q"):
		return m.must("jobledger cancel -q bg --state queued --state blocked 2>/dev/null || :")
	}
	return newest("jobledger run -b --delay 1h echo did")
}

// TestMigrateFromOneCommandEach: on the page, each command of ours next to one of at, GNU parallel, pueue and
// task-spooler does something, and there are ten tasks of each. The commands of parallel print what ours
// print, those of at are for the same time, and those of task-spooler are right, where these are installed.
func TestMigrateFromOneCommandEach(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	m := migrants{t, t.TempDir()}
	if err := os.WriteFile(filepath.Join(m.folder, "script"), []byte("echo did\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page := readPage(t, "docs/migrate-from.md")
	code := regexp.MustCompile("`([^`]+)`")
	ran := 0
	for _, title := range []string{"at and batch", "GNU parallel and xargs", "pueue", "task-spooler"} {
		_, section, found := strings.Cut(page, "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		tasks := 0
		for row := range strings.Lines(section) {
			cells := strings.Split(strings.ReplaceAll(row, `\|`, "\x00"), "|")
			if len(cells) != 4 || !strings.Contains(cells[1], "`") {
				continue
			}
			tasks++
			theirs, ours := code.FindAllStringSubmatch(cells[1], -1), code.FindAllStringSubmatch(cells[2], -1)
			for _, one := range ours {
				line := strings.ReplaceAll(one[1], "\x00", "|")
				if !strings.Contains(line, "jobledger ") || noLine.MatchString(line) {
					continue
				}
				line = strings.ReplaceAll(line, "JOB", strings.TrimSpace(m.job(line)))
				got := m.must(line)
				if len(ours) == 1 && !strings.HasPrefix(cells[2], " no") {
					ran++
					m.compare(title, strings.ReplaceAll(theirs[0][1], "\x00", "|"), line, got)
				}
			}
		}
		if !found || tasks < 10 {
			t.Errorf("%s: %d tasks", title, tasks)
		}
	}
	if ran < 30 {
		t.Errorf("%d tasks take one command", ran)
	}
	m.must("jobledger verify")
	_, _ = m.run("tsp -K") // its server ends
}

// compare runs a command of another program, if that is installed, next to a line of ours that printed got.
func (m migrants) compare(title, theirs, ours, got string) {
	m.Helper()
	has := func(program string) bool {
		_, err := exec.LookPath(program)
		if err != nil && os.Getenv("CI") == "true" {
			m.Error(err)
		}
		return err == nil
	}
	sorted := func(text string) []string { return slices.Sorted(strings.Lines(text)) }
	switch title {
	case "GNU parallel and xargs":
		if asks := strings.Contains(theirs, ":::") || strings.HasPrefix(theirs, "printf"); !asks ||
			strings.Contains(theirs, "--tag") || !has("parallel") {
			return
		}
		out := m.must(strings.Replace(theirs, "parallel ", "parallel --will-cite ", 1))
		if got = lastLine.ReplaceAllString(got, ""); !slices.Equal(sorted(out), sorted(got)) {
			m.Errorf("%s printed\n%s%s printed\n%s", theirs, out, ours, got)
		}
	case "at and batch":
		if !strings.Contains(ours, "--run-at") && !strings.Contains(ours, "--delay") || !has("at") {
			return
		}
		said := regexp.MustCompile(`job (\d+) at (.*)`).FindStringSubmatch(m.must(theirs))
		if said == nil {
			m.Errorf("%s made no job", theirs)
			return
		}
		m.must("atrm " + said[1])
		at, err := time.ParseInLocation("Mon Jan _2 15:04:05 2006", said[2], time.Local)
		text := strings.TrimSpace(m.must("jobledger show --last --json | head -1 | jq -r .run_at"))
		if here, hereErr := time.Parse(time.RFC3339, text); err != nil || hereErr != nil ||
			here.Sub(at).Abs() > 2*time.Minute {
			m.Errorf("%s is for %s, %s for %s", theirs, said[2], ours, text)
		}
	case "task-spooler":
		if strings.Contains("-r -k -u -C", strings.Fields(theirs)[1]) || !has("tsp") { // of one that waits
			return
		}
		m.must(theirs)
	}
}

// noLine is in what names a flag or a part, and is not a line to run.
var noLine = regexp.MustCompile("NAME|--url|&& CMD")

// lastLine is what run says of many commands at the end.
var lastLine = regexp.MustCompile(`(?m)^jobledger: .*\n`)
