package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/doctor"
	"jobledger/ledger/ledgertest"
)

// writingVerbs change the ledger, and readingVerbs do not.
var (
	writingVerbs = [][]string{{"enqueue", "-q", "mail", "x"}, {"claim", "-q", "mail"}, {"pause", "-q", "mail"},
		{"work", "-q", "mail", "--drain", "--", "true"},
		{"rebuild"}, {"migrate", "--compact"}, {"seal", "--init"},
		{"schedule", "set", "s", "-q", "mail", "--cron", "@daily", "x"}}
	readingVerbs = [][]string{{"list"}, {"status"}, {"verify"}, {"export"}, {"events"}}
)

// at returns words with --db name.
func at(name string, words []string) []string {
	return slices.Insert(slices.Clone(words), 1, "--db", name)
}

// A hard link is made to a ledger that a worker has open. Nothing that is acknowledged after that may be
// lost, so nothing is acknowledged at either name.
func TestSecondNameLosesNoAcknowledgedJob(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.mkdir("other")
	const second = "other/jobledger.db"
	acked := []string{s.enqueue("first")}
	w := s.work("--", "sleep", "0.05")
	s.eventually("a job is claimed", func() bool { return strings.Contains(s.ran("events").stdout, "claimed") })
	s.ok(os.Link(s.path(db), s.path(second)))
	for range 3 {
		for _, name := range []string{db, second} {
			if got := s.ran("enqueue", "-q", "mail", "--db", name, "x"); got.code == cli.ExitOK {
				acked = append(acked, strings.TrimSpace(got.stdout))
			} else if got.code != cli.ExitUnexpected || !strings.Contains(got.stderr, "2 names") {
				t.Errorf("enqueue at %s: exit code %d\n%s", name, got.code, got.stderr)
			}
		}
	}
	for _, job := range acked { // with the -wal file of the worker
		s.wantJob(job, `"queue":"mail"`)
	}
	w.signal(syscall.SIGTERM)
	w.wantExit(cli.ExitOK)
	before := s.everything()
	for _, name := range []string{db, second} {
		for _, words := range writingVerbs {
			if got := s.ran(at(name, words)...); got.code != cli.ExitUnexpected ||
				!strings.Contains(got.stderr, "ledger: the file has a second name") {
				t.Errorf("%s at %s: exit code %d\n%s", words[0], name, got.code, got.stderr)
			}
		}
		for _, words := range readingVerbs {
			if got := s.ran(at(name, words)...); got.code != cli.ExitOK ||
				!strings.Contains(got.stderr, "may be missing") {
				t.Errorf("%s at %s: exit code %d\n%s", words[0], name, got.code, got.stderr)
			}
		}
	}
	if after := s.everything(); !maps.Equal(before, after) {
		t.Errorf("the folder has changed: %v, before it was %v", after, before)
	}
	s.ok(os.Remove(s.path(second)))
	for _, job := range acked {
		s.wantJob(job, `"queue":"mail"`)
	}
	s.run("verify")
}

// inNamespace runs a script in a mount namespace of its own, as root there. It skips the test where the
// system does not permit that.
func (s site) inNamespace(script string) string {
	s.Helper()
	words := []string{"-m"}
	if os.Getuid() != 0 {
		words = []string{"-Urm"}
	}
	if out, err := exec.Command("unshare", append(words, "true")...).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" && os.Getuid() == 0 {
			s.Fatalf("no mounts of its own: %v: %s", err, out)
		}
		s.Skipf("no mounts of its own: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", append(words, "sh", "-c", script)...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// As "-v ./jobledger.db:/data/jobledger.db" does it in a container: the file is mounted without its folder.
func TestFileMountedAloneLosesNoAcknowledgedJob(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.mkdir("data")
	s.touch("data/jobledger.db")
	var script strings.Builder
	script.WriteString("mount --bind jobledger.db data/jobledger.db || exit 9\n" +
		"jobledger enqueue -q mail zero >>acked\n" +
		"jobledger work -q mail --max-jobs 7 -- sleep 0.05 2>said & \n" +
		"for i in 1 2 3; do jobledger enqueue -q mail host >>acked\n" +
		"  jobledger enqueue -q mail --db data/jobledger.db inside >>acked; echo \"inside $?\"; done 2>&1\n")
	for _, words := range writingVerbs {
		script.WriteString("jobledger " + strings.Join(at("data/jobledger.db", words), " ") +
			" >/dev/null 2>refused; " +
			"echo \"" + words[0] + " $?\"; grep -q 'mount the folder that holds it' refused || cat refused\n")
	}
	script.WriteString("for i in 1 2 3; do jobledger enqueue -q mail host >>acked; done; wait\n" +
		"jobledger doctor --db data/jobledger.db\n" +
		"jobledger list --db data/jobledger.db 2>&1 >/dev/null\n" +
		"jobledger list --db 'sqlite:data/jobledger.db?names=allow' >/dev/null; echo \"allowed $?\"\n")
	got := s.inNamespace(script.String())
	if n := strings.Count(got, "inside 1\n"); n != 3 {
		t.Errorf("enqueue within: %d refused, want 3:\n%s", n, got)
	}
	for _, words := range writingVerbs {
		if !strings.Contains(got, "\n"+words[0]+" 1\n") {
			t.Errorf("%s did not end with 1:\n%s", words[0], got)
		}
	}
	for _, want := range []string{doctor.CodeSecondName + "  problem", "is mounted without its folder",
		"what is not yet in the file itself is missing", "allowed 0"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant it to have %q", got, want)
		}
	}
	acked, err := os.ReadFile(s.path("acked"))
	s.ok(err)
	ids := strings.Fields(string(acked))
	if len(ids) != 7 {
		t.Errorf("%d jobs were acknowledged, want 7", len(ids))
	}
	for _, job := range ids {
		s.wantJob(job, `"state":"succeeded"`)
	}
	if left, _ := filepath.Glob(s.path("data/*-wal")); len(left) > 0 {
		t.Errorf("there is %q", left)
	}
	s.run("verify")
}
