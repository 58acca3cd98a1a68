package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
)

// salted matches a digest, which differs in each run because its salt is random.
var salted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b[0-9a-f]{64}\b`)
})

// A change of the printed text shows as a diff; -update rewrites the file.
func TestReadTranscript(t *testing.T) {
	const golden = "../../testdata/golden/see.txt"
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	s := newScenario(t)
	j := string(s.lost().ID)
	s.rest()
	s.wait(5 * time.Minute) // w3 is dead by then
	var out strings.Builder
	show := s.transcript(&out)
	show(0, "status")
	show(80, "status")
	show(0, "status", "--json")
	show(0, "list")
	show(80, "list", "--state", "queued", "--state", "claimed", "--limit", "2")
	show(0, "list", "--tag", "customer=17", "--queue", "mail", "--key", "inv-1", "--json")
	show(0, "show", j)
	show(0, "show", "01KDY9FY88TH00000000000009")
	show(0, "history", j)
	show(80, "history", j)
	show(0, "events")
	show(100, "events", "--kind", "refused", "--kind", "reclaimed")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != out.String() {
		t.Errorf("%v; got\n%s", err, out.String())
	}
}

func TestEventsFilterByTimeAndPosition(t *testing.T) {
	s := newScenario(t)
	j := string(s.lost().ID)
	tests := []struct {
		flags string
		want  string // the pos of each event
	}{
		{"", "1 2 3 4 5 6 7 8 9 10 11"},
		{"--from pos:3 --to pos:5", "3 4 5"},
		{"--from pos:0 --to pos:1", "1"},
		{"--to pos:0", ""},
		{"--from pos:12", ""},
		{"--from 2026-01-02T03:04:26.5Z --to 2026-01-02T03:06:31.5Z", "3 4 5"}, // both ends are included
		{"--from 2026-01-02T03:04:26.500001Z --to 2026-01-02T03:06:31.499999Z", "4"},
		{"--to 2026-01-02T03:04:04Z", ""},
		{"--after 9", "10 11"},
		{"--after 9 --from pos:3", "10 11"},
		{"--limit 2", "1 2"},
		{"--limit 11", "1 2 3 4 5 6 7 8 9 10 11"},
		{"--worker w1", "2 3 4 6"},
		{"--worker 01KDY9FY88BT0000000000W200 --kind claimed", "5 8 10"},
		{"--actor sweeper:build7", "4"},
		{"--kind refused --kind failed", "6 7"},
		{"--queue mail --kind enqueued --job " + j, "1"},
		{"--queue web", ""},
	}
	for _, tt := range tests {
		code, stdout, stderr := s.run(0, append([]string{"events", "--json"}, strings.Fields(tt.flags)...)...)
		var got []string
		for line := range strings.Lines(stdout) {
			pos, _, _ := strings.Cut(strings.TrimPrefix(line, `{"pos":`), ",")
			got = append(got, pos)
		}
		wantCode := cli.ExitOK
		if tt.want == "" {
			wantCode = cli.ExitNothing
		}
		if strings.Join(got, " ") != tt.want || code != wantCode {
			t.Errorf("%s: got %v, exit %d; want %s\n%s", tt.flags, got, code, tt.want, stderr)
		}
		more := strings.Contains(stderr, "there are more; go on with --after 2")
		if more != (tt.flags == "--limit 2") {
			t.Errorf("%s: stderr %q", tt.flags, stderr)
		}
	}
}

func TestListingsSpanPages(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	const n = 5000 + 3 // more than a page of events
	jobs := make([]commands.Enqueue, n)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail"}
	}
	if _, err := s.Enqueue(t.Context(), "cli:ada@build7", jobs...); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		typed string
		lines int
		last  string // of the last line
	}{
		{"events --json", n, `{"pos":5003,`},
		{"events --json --limit 5000", 5000, `{"pos":5000,`},
		{"events --json --after 5001 --limit 5001", 2, `{"pos":5003,`},
		{"list --json", 50, `{"id":"01KDY9FY88TH00000000004954",`},
		{"list --json --limit 0", n, `{"id":"01KDY9FY88TH00000000000001",`},
		{"list --json --limit 1000", 1000, `{"id":"01KDY9FY88TH00000000004004",`},
		{"list --json --limit 9223372036854775807", n, `{"id":"01KDY9FY88TH00000000000001",`},
		{"events --json --limit 9223372036854775807", n, `{"pos":5003,`},
		{"list --json --limit 5003", n, `{"id":"01KDY9FY88TH00000000000001",`},
	}
	for _, tt := range tests {
		code, stdout, _ := s.run(0, strings.Fields(tt.typed)...)
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		last := lines[len(lines)-1]
		if code != cli.ExitOK || len(lines) != tt.lines || !strings.HasPrefix(last, tt.last) {
			t.Errorf("%s: exit %d, %d lines, the last is %.60s", tt.typed, code, len(lines), last)
		}
	}
}

func TestHistoryCollapsesHeartbeats(t *testing.T) {
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	j := s.claim("w1", "mail")
	for i := range 50 {
		s.wait(20 * time.Second)
		if i == 30 {
			s.wait(15 * time.Second)
		}
		s.do("worker:w1", j, commands.Heartbeat{Token: j.Token, Lease: time.Minute})
	}
	s.do("worker:w1", j, commands.Succeed{Token: j.Token})
	_, stdout, _ := s.run(0, "history", string(j.ID))
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	const folded = "… 48 heartbeats more, the longest pause was 35s; --json has them"
	if len(lines) != 7 || strings.TrimSpace(lines[4]) != folded ||
		!strings.Contains(lines[5], " +20s  heartbeat") {
		t.Errorf("got\n%s", stdout)
	}
}

// transcript returns a function that runs a command and records what a reader sees at this width; 0 is a
// pipe.
func (s *scenario) transcript(out *strings.Builder) func(width int, typed ...string) {
	return func(width int, typed ...string) {
		code, stdout, stderr := s.run(width, typed...)
		where := "piped"
		if width > 0 {
			where = fmt.Sprintf("%d columns", width)
		}
		fmt.Fprintf(out, "$ jobledger %s   # %s\n%s%s", strings.Join(typed, " "), where,
			salted().ReplaceAllString(stdout, "(64 hex digits)"), stderr)
		if code != 0 {
			fmt.Fprintf(out, "exit %d\n", code)
		}
		out.WriteByte('\n')
	}
}

func TestWideShowsEveryColumn(t *testing.T) {
	s := newScenario(t)
	s.lost()
	s.claim("w9", s.enqueue(commands.Enqueue{Queue: "web"}).Queue)
	for verb, column := range map[string]string{"list": "WORKER", "workers": "VERSION", "attempts": "HOST"} {
		args := []string{verb}
		if verb == "workers" {
			args = append(args, "--all")
		}
		_, narrow, _ := s.run(60, args...)
		_, wide, _ := s.run(60, append(args, "--wide")...)
		if strings.Contains(narrow, column) || !strings.Contains(wide, column) {
			t.Errorf("%s: the column %s should be there with --wide only; got\n%s\nand\n%s",
				verb, column, narrow, wide)
		}
	}
}
