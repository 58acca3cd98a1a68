package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// refused is "refused CODE WHY HINT PROGRAM ARGS…" in a script: the program must end with this exit code,
// print nothing on stdout, and on stderr exactly this message with this hint, which may be empty for none.
// Go's escapes in ARGS stand for bytes that a text file cannot hold.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: refused code why hint program [args...]")
	}
	want := cli.ProgramName + ": " + args[1] + "\n"
	if args[2] != "" {
		want += "hint: " + args[2] + "\n"
	}
	typed := make([]string, len(args)-4)
	for i, word := range args[4:] {
		typed[i] = unescape(ts, word)
	}
	code := 0
	if err := ts.Exec(args[3], typed...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
	if got := ts.ReadFile("stdout"); got != "" {
		ts.Fatalf("stdout is not empty: %s", got)
	}
	if got := ts.ReadFile("stderr"); got != want {
		ts.Fatalf("stderr is\n%swant\n%s", got, want)
	}
}

// writeBytes is "bytes FILE (TEXT TIMES)…" in a script: it writes a file with each text so many times, with
// Go's escapes.
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args)%2 == 0 {
		ts.Fatalf("usage: bytes file (text times)...")
	}
	var content strings.Builder
	for i := 1; i < len(args); i += 2 {
		times, err := strconv.Atoi(args[i+1])
		ts.Check(err)
		content.WriteString(strings.Repeat(unescape(ts, args[i]), times))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(content.String()), 0o600))
}

func unescape(ts *testscript.TestScript, word string) string {
	if !strings.Contains(word, `\`) {
		return word
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(word, `"`, `\"`) + `"`)
	ts.Check(err)
	return text
}

// evil is text that could mislead the reader of a terminal: it clears the screen, sets the title, changes the
// direction of writing, hides text, starts another line, and contains invalid bytes.
const evil = "a\x1b[2J\x1b]0;x\x07\u202e\u2066\u200b\ufeff\u2028\U000e0041\u009b1m\x7f\r\nb\tc"

// evilScenario returns a ledger in which every text that a producer, a worker or an operator can choose is
// evil, and three of its jobs.
func evilScenario(t *testing.T) (*scenario, []event.JobID) {
	t.Helper()
	s := newScenario(t)
	who := event.Worker{Name: evil, Boot: "01KDY9FY88BT0000000000EVIL", Host: evil, PID: 1}
	if err := s.WorkerStarted(t.Context(), who, []string{"mail"}, []string{"gpu"}); err != nil {
		t.Fatal(err)
	}
	enqueue := func(key string) projection.Job {
		jobs, err := s.Enqueue(t.Context(), evil, commands.Enqueue{Queue: "mail", Key: key,
			Payload: []byte(evil + "\x00"), Tags: map[string]string{evil: evil}})
		if err != nil {
			t.Fatal(err)
		}
		return jobs[0].Job
	}
	claim := func() projection.Job {
		jobs, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: who})
		if err != nil || len(jobs) != 1 {
			t.Fatal(len(jobs), err)
		}
		return jobs[0]
	}
	enqueue(evil)
	j := claim()
	s.do(evil, j, commands.Heartbeat{Token: j.Token, Lease: commands.DefaultLease, Note: evil})
	s.do(evil, j, commands.Release{Token: j.Token, Reason: evil})
	j = claim()
	s.do(evil, j, commands.Fail{Token: j.Token, Detail: evil, Signal: evil, NoRetry: true})
	s.do(evil, j, commands.Retry{Reason: evil})
	j = claim()
	s.do(evil, j, commands.Succeed{Token: j.Token, Result: []byte(evil)})
	s.do(evil, j, commands.Fail{Token: j.Token}) // refused
	held := enqueue(evil + "2")
	claim()
	waiting := enqueue(evil + "3")
	s.do(evil, enqueue(evil+"4"), commands.Cancel{Reason: evil})
	if _, err := s.Pause(t.Context(), evil, "mail", evil); err != nil {
		t.Fatal(err)
	}
	return s, []event.JobID{j.ID, held.ID, waiting.ID}
}

// TestTerminalOutputIsEscaped: names, reasons and payloads with control characters appear on a terminal as
// plain text in lines.
func TestTerminalOutputIsEscaped(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	s, ids := evilScenario(t)
	lines := 0
	read := func(width int, typed ...string) {
		t.Helper()
		_, stdout, stderr := s.run(width, typed...)
		for i, r := range stdout + stderr {
			if r != '\n' && r != '\t' && words.Harmful(r) || r == '\ufffd' {
				t.Fatalf("%q prints %q", typed, (stdout + stderr)[max(0, i-20):min(len(stdout+stderr), i+20)])
			}
		}
		lines += strings.Count(stdout, "\n")
	}
	widths := ledgertest.Size([]int{80}, []int{0, 40}, []int{0, 40, 200})
	for _, width := range widths {
		for _, id := range ids {
			for _, verb := range []string{"show", "history", "why", "logs"} {
				read(width, verb, string(id))
			}
			read(width, "owner", string(id), "--at", "pos:4")
			read(width, "show", string(id), "--as-of", "pos:5")
		}
		for _, verb := range []string{"list", "events", "attempts", "status", "workers", "verify"} {
			read(width, verb)
			read(width, verb, "--json")
		}
		for _, line := range []string{"list --as-of pos:9", "status --as-of pos:9", "workers --all",
			"diff --from pos:1", "attempts --overlap",
			"claim -q mail", "pause -q mail", "export", "export --format csv", "export --format trace",
			"export --format otlp"} {
			read(width, strings.Fields(line)...)
		}
		read(width, "list", "--key", evil, "-q", evil)
		read(width, evil)
		read(width, "pause", "-q", "mail", "--reason", evil+strings.Repeat(evil, 100))
	}
	if lines < 100*len(widths) {
		t.Errorf("only %d lines were printed", lines)
	}
	checkVerified(t, s)
}

// checkVerified ends a test: the tables equal the fold of the ledger.
func checkVerified(t *testing.T, s *scenario) {
	t.Helper()
	err := s.Store.Read(context.Background(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(context.Background(), tx, nil)
		for _, f := range v.Findings {
			t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// FuzzReading runs any line of a read-only command: it ends with a documented exit code, explains a code
// other than 0 on stderr, writes nothing harmful to the terminal, and does not change the ledger.
func FuzzReading(f *testing.F) {
	for _, seed := range []string{
		"list\n--state\nqueued\n--limit\n0", "list\n--tag\na=1\n--as-of\npos:3", "show\n01K\n--json",
		"history\n01KDY9FY88TH00000000000001", "why\n0",
		"events\n--kind\nrefused\n--from\n-1h\n--to\npos:9", "events\n-qmail\n--after=3\n--limit=2",
		"attempts\n--overlap\n--outcome\nopen", "owner\n01K\n--at\n12:00",
		"status\n--as-of\n2026-01-02T03:04:05Z", "workers\n--all", "diff\n--from\npos:1\n--limit\n9",
		"export\n--format\ncsv", "verify\n--json", "list\n--\n-q", "list\n\xff\x1b[2J",
		"list\n--as-of\nyesterday", "events\n--from\n2026-05-04", "list\n--limit\n-1", "list\n--state\ndone",
		"show\n../x", "list\n-q\nMail", "list\n--key\n",
		"attempts\n--from\npos:3\n--to\npos:1", "list\n-q\na\n--limit\n1\n--limit\n2", "diff\n--from\npos:99",
		"why\n\u202e", "export\n--format\nxml",
	} {
		f.Add(seed, 0)
		f.Add(seed, 80)
	}
	readers := []string{"list", "show", "history", "why", "events", "attempts", "owner", "status", "workers",
		"diff", "export", "verify"}
	f.Setenv("NO_COLOR", "1")
	s := newScenario(f)
	s.lost()
	s.rest()
	before := walkHistory(f, s)
	f.Fuzz(func(t *testing.T, text string, width int) {
		typed := strings.Split(text, "\n")
		// events -f never ends
		if !slices.Contains(readers, typed[0]) || strings.Contains(text, "-f") || strings.Contains(text, "\x00") {
			return
		}
		s.T = t
		code, stdout, stderr := s.run(max(0, width%300), typed...)
		if !slices.ContainsFunc(fault.ExitMeanings, func(m fault.ExitMeaning) bool { return m.Code == code }) ||
			code == cli.ExitUnexpected {
			t.Fatalf("%q: exit code %d: %s", typed, code, stderr)
		}
		if code != cli.ExitOK && !saysWhy(stderr) {
			t.Fatalf("%q: exit code %d without a word: %q", typed, code, stderr)
		}
		for _, r := range stdout + stderr {
			if r != '\n' && r != '\t' && words.Harmful(r) || r == '\ufffd' && !strings.ContainsRune(text, r) {
				t.Fatalf("%q prints %q", typed, r)
			}
		}
		if len(stderr) > 5000 {
			t.Fatalf("%q: an answer of %d bytes", typed, len(stderr))
		}
		if after := walkHistory(t, s); len(after.events) != len(before.events) {
			t.Fatalf("%q has made an event", typed)
		}
	})
}

// saysWhy reports whether stderr begins with a message, or is an error as --json gives it.
func saysWhy(stderr string) bool {
	if strings.HasPrefix(stderr, cli.ProgramName+": ") {
		return true
	}
	var e struct{ Code, Message string }
	line, _, _ := strings.Cut(stderr, "\n")
	return json.Unmarshal([]byte(line), &e) == nil && e.Code != "" && e.Message != ""
}
