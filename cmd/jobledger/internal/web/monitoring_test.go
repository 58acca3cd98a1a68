package web

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/ledger/ledgertest"
)

// monitoring is the folder with the dashboard and the alerts.
var monitoring = filepath.Join("..", "..", "..", "..", "testdata", "monitoring")

// ofFile matches the metrics that only a ledger in a file has.
var ofFile = regexp.MustCompile("^jobledger_(db|wal|disk)_")

// Each metric that the dashboard and the alerts name is one that serve has, and the dashboard is JSON with a
// query in each panel.
func TestMonitoringNamesMetricsThatExist(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token := s.create("m", []string{"*"}, access.Metrics)
	s.do("GET", "/metrics", nil, "Authorization", token)
	_, text := s.do("GET", "/metrics", nil, "Authorization", token) // the first answer is counted in the second
	if runtime.GOOS == "linux" {                                    // other systems do not report all
		for _, one := range []string{"process_cpu_seconds_total ", "process_resident_memory_bytes ",
			"process_open_fds ", "jobledger_disk_free_bytes ", "jobledger_disk_size_bytes "} {
			if ofFile.MatchString(one) && ledgertest.OnPostgres(t) {
				continue
			}
			if !regexp.MustCompile(`(?m)^` + one + `[0-9.e+]*[1-9]`).MatchString(text) {
				t.Errorf("no %s in\n%s", one, text)
			}
		}
	}
	name := regexp.MustCompile(`jobledger_[a-z_]+`)
	there := map[string]bool{}
	for _, one := range name.FindAllString(text, -1) {
		there[one] = true
	}
	for _, file := range []string{"grafana.json", "alerts.yaml", "alerts_test.yaml"} {
		content, err := os.ReadFile(filepath.Join(monitoring, file))
		if err != nil {
			t.Fatal(err)
		}
		names := name.FindAllString(string(content), -1)
		for _, one := range names {
			if !there[one] && !(ofFile.MatchString(one) && ledgertest.OnPostgres(t)) {
				t.Errorf("%s names %s, which serve does not have", file, one)
			}
		}
		if len(names) < 5 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	content, err := os.ReadFile(filepath.Join(monitoring, "grafana.json"))
	if err == nil {
		err = json.Unmarshal(content, &dashboard)
	}
	if err != nil || len(dashboard.Panels) != 18 {
		t.Fatalf("the dashboard has %d panels, %v", len(dashboard.Panels), err)
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || !strings.Contains(p.Targets[0].Expr, "jobledger_") {
			t.Errorf("the panel %s asks for nothing", p.Title)
		}
	}
	checkExposition(t, text)
}

// checkExposition has promtool read the text.
func checkExposition(t *testing.T, text string) {
	t.Helper()
	// #nosec G204 -- as the system has it
	cmd := exec.CommandContext(t.Context(), promtool(t), "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// promtool returns the path of the program; a test is skipped where it is not installed.
func promtool(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("promtool is not installed") // in CI that is a failure
	}
	return tool
}

func TestAlertsFireAsTheirTestsSay(t *testing.T) {
	t.Parallel()
	tool := promtool(t)
	for _, words := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), tool, words...) // #nosec G204 -- as the system has it
		cmd.Dir = monitoring
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
}
