//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// The unit for systemd in the docs is valid, and what it starts serves.
func TestServeUnitInTheDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	s := newSite(t)
	_, unit, found := strings.Cut(readPage(t, "docs/http.md"), "\n    [Service]\n")
	unit, _, whole := strings.Cut("    [Service]\n"+unit, "\n\n## ")
	program, err := exec.LookPath("jobledger")
	s.ok(err)
	unit = strings.ReplaceAll(unit, "\n    ", "\n")[4:] + "\n"
	_, line, starts := strings.Cut(unit, "\nExecStart=/usr/local/bin/jobledger ")
	line, _, _ = strings.Cut(line, "\n")
	if !found || !whole || !starts {
		t.Fatalf("the docs have the unit\n%s", unit)
	}
	s.ok(os.WriteFile(s.path("jobledger.service"), []byte(strings.ReplaceAll(unit, "/usr/local/bin/jobledger",
		program)), 0o600))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no",
		s.path("jobledger.service")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "jobledger.service:") {
		t.Errorf("the unit is\n%s\n%v\n%s", unit, err, out)
	}
	words := strings.Fields(strings.NewReplacer("/var/lib/jobledger/jobs.db", s.path(db), "127.0.0.1:8080",
		"127.0.0.1:0").Replace(line))
	server, _ := s.serve(words[1:]...)
	server.wantSaid("https://jobs.example.com/login#")
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
}

// The units of the packages for what a user's jobs carry are valid, and what they start runs the jobs of
// run -b and of schedules in the ledger that run makes.
func TestUnitsOfCommands(t *testing.T) {
	t.Parallel()
	const folder = "../../testdata/release/files/root/usr/lib/systemd/"
	program, err := exec.LookPath("jobledger")
	check(t, err)
	for unit, name := range map[string]string{
		"system/jobledger-commands@.service": "jobledger-commands@root.service",
		"user/jobledger-commands.service":    "jobledger-commands.service",
	} {
		text, err := os.ReadFile(folder + unit)
		check(t, err)
		s := newSite(t)
		home := s.path("home")
		s.ok(os.Mkdir(home, 0o700))
		if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
			here := bytes.ReplaceAll(text, []byte("/usr/bin/jobledger"), []byte(program))
			s.ok(os.WriteFile(s.path(name), here, 0o600))
			out, err := exec.Command(analyze, "verify", "--man=no", s.path(name)).CombinedOutput()
			if err != nil || strings.Contains(string(out), name+":") {
				t.Errorf("%s: %v\n%s", unit, err, out)
			}
		} else if os.Getenv("CI") == "true" {
			t.Error(err)
		}
		script := "cd; WORK_FLAGS=-j4\n"
		for _, key := range []string{"\nExecStartPre=", "\nExecStart="} {
			_, line, found := strings.Cut(string(text), key)
			line, _, _ = strings.Cut(line, "\n")
			if !found {
				t.Errorf("%s has no %s", unit, key)
			}
			script += strings.NewReplacer("%h", home, "/usr/bin/jobledger", "jobledger").Replace(line) + "\n"
		}
		run := func(script string) string {
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
			cmd.Dir = home
			cmd.Env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME=", "JOBLEDGER_DB=")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", script, err, out)
			}
			return string(out)
		}
		run("jobledger run -b --key b true; jobledger run -b -q run --key r true\n" +
			"jobledger schedule set s --every 1h -- true; jobledger schedule run s\n")
		out := run(strings.TrimSuffix(script, "\n") + " --drain\n")
		if !strings.Contains(out, "3 claimed, 3 succeeded") {
			t.Errorf("%s: %s", unit, out)
		}
		run("jobledger verify")
	}
}
