package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"jobledger/ledger/ledgertest"
)

// browserFolder has what runs in node.
const browserFolder = "../../testdata/browser"

// installing is held while packages are looked for and installed: tests run at once.
var installing sync.Mutex

// chromium returns the path of the browser. Without it, node or npm the test is skipped on a user's machine,
// and fails in CI.
func chromium(t *testing.T) string {
	t.Helper()
	path := ""
	for _, tool := range []string{"node", "npm", "chromium"} {
		var err error
		if path, err = exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("the tests in a browser need node, npm and chromium: %v", err)
			}
			t.Skipf("the tests in a browser need node, npm and chromium: %v", err) // Skip: a tool is missing
		}
	}
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(filepath.Join(browserFolder, "node_modules", "axe-core")); err == nil {
		return path
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	install.Dir = browserFolder
	if out, err := install.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("npm ci: %v\n%s", err, out)
		}
		t.Skipf("npm ci: %v\n%s", err, out) // Skip: the packages cannot be had here
	}
	return path
}

// browserTask is what pages.mjs is asked.
type browserTask struct {
	Link     string        `json:"link"`
	Browser  string        `json:"browser"`
	Profile  string        `json:"profile"`
	Pages    []string      `json:"pages"`
	Aria     []browserPart `json:"aria"`
	Night    *browserNight `json:"night"`
	Forms    bool          `json:"forms"` // of jobs, and then pages that stay up to date
	Pictures string        `json:"pictures"`
}

// browserPart is a part of a page, as a selector of CSS.
type browserPart struct {
	Path string `json:"path"`
	Part string `json:"part"`
}

// browserNight is the page of lanes, and the file for its picture.
type browserNight struct {
	Path    string `json:"path"`
	Picture string `json:"picture"`
}

// browse runs the task, and returns the facts that it found. Findings fail the test.
func browse(t *testing.T, task browserTask) map[string]any {
	t.Helper()
	task.Browser, task.Profile = chromium(t), t.TempDir()
	task.Pictures = os.Getenv("JOBLEDGER_TEST_PICTURES")
	in, err := json.Marshal(task)
	check(t, err)
	look := exec.CommandContext(t.Context(), "node", "pages.mjs")
	look.Dir, look.Stdin = browserFolder, bytes.NewReader(in)
	look.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr bytes.Buffer
	look.Stderr = &stderr
	out, err := look.Output()
	if err != nil {
		t.Fatalf("pages.mjs: %v\n%s", err, stderr.String())
	}
	var answer struct {
		Findings []string
		Facts    map[string]any
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("pages.mjs printed %s: %v", out, err)
	}
	for _, f := range answer.Findings {
		t.Error(f)
	}
	return answer.Facts
}

// TestPagesInBrowser opens the bad night in Chromium: no page has an error, breaks its policy, is
// inaccessible in light or dark, needs a script or a mouse, or is wider than a small screen.
func TestPagesInBrowser(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s := importNight(t)
	n := serveStore(t, s.Store, atMorning)
	const zombie = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	const window = "from=2026-03-14T23:30:00Z&to=2026-03-15T04:00:00Z"
	pages := []string{"/", "/lanes?" + window, "/jobs/" + zombie, "/tail", "/queues/mail?" + window,
		"/failures?" + window, "/workers", "/incident?" + window, "/api"}
	pages = append(pages, ledgertest.Size(nil, nil, []string{"/?at=pos:2159", "/jobs?queue=mail&at=pos:2159",
		"/jobs/" + zombie + "?at=pos:2159", "/events?kind=refused", "/jobs", "/lanes", "/integrity", "/failures",
		"/workers?at=pos:2159&all=true", "/workers/charlie-render?" + window, "/workers/alpha-render?at=pos:1500",
		"/diff?" + window, "/lanes?at=pos:1", "/queues/render?at=pos:2159", "/incident",
		"/queues", "/queues/mail/limit", "/queues/mail/defaults"})...)
	if only := os.Getenv("JOBLEDGER_TEST_PAGES"); only != "" {
		pages = strings.Fields(only)
	}
	night := &browserNight{Path: "/lanes?at=2026-03-15T04:00:00Z&from=2026-03-14T23:30:00Z"}
	if *update {
		picture, err := filepath.Abs("docs/night.png")
		check(t, err)
		night.Picture = picture
	}
	aria := []browserPart{{"/?at=pos:2800", ".course"}, {"/?at=pos:2800", ".two"},
		{"/queues/mail?" + window, ".charts"}, {"/queues/mail?" + window, ".timeline"},
		{"/lanes?" + window, ".findings"}, {"/api", ".answers"}}
	facts := browse(t, browserTask{Link: <-n.links, Pages: pages, Aria: aria, Night: night})
	compareAria(t, facts["aria"])
	delete(facts, "aria")
	t.Logf("the night: %v", facts)
}

// compareAria compares what is read aloud of pages with the golden file.
func compareAria(t *testing.T, read any) {
	t.Helper()
	var text strings.Builder
	parts, _ := read.([]any)
	for _, part := range parts {
		fmt.Fprintln(&text, part)
	}
	const golden = "../../testdata/golden/aria.txt"
	if *update {
		check(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	check(t, err)
	if got := text.String(); got != string(want) {
		t.Errorf("what is read aloud differs from %s; -update writes it. It is\n%s", golden, got)
	}
}
