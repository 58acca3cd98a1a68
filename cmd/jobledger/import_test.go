package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/export"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// damage is a kind of damage to a line, and the error that it causes.
type damage struct {
	name string
	kind string // the first line of this kind is changed
	old  string // a regular expression; what it matches becomes new
	new  string
	why  string // a regular expression
}

var damages = []damage{
	{"no JSON", "claimed", `^`, `hello `, "not a JSON object; what is wanted"},
	{"bad JSON", "claimed", `,"kind"`, `"kind"`, "a comma is missing"},
	{"cut off", "claimed", `,"data".*`, ``, "the JSON object has no end"},
	{"empty", "claimed", `.*`, ``, "it is empty"},
	{"not UTF-8", "enqueued", `"actor":"`, "\"actor\":\"\xff", "not UTF-8"},
	{"unknown kind", "claimed", `"kind":"claimed"`, `"kind":"grabbed"`, `unknown event kind: "grabbed"`},
	{"unknown field", "claimed", `"data":\{`, `"data":{"colour":"red",`, `unknown field "colour"`},
	{"unknown key", "claimed", `^\{`, `{"colour":"red",`, `unknown field "colour"`},
	{"unknown state", "claimed", `"to_state":"claimed"`, `"to_state":"grabbed"`, `no state "grabbed"`},
	{"twice the same key", "claimed", `^\{`, `{"actor":"x",`, `unknown field "actor"`},
	{"at is missing", "claimed", `"at":"[^"]*",`, ``, "at is missing"},
	{"at is not a time", "claimed", `"at":"[^"]*"`, `"at":"yesterday"`, `field "at": got "yesterday"`},
	{"the clock runs back", "claimed", `"at":"2026-`, `"at":"2025-`,
		"event [0-9]+ at 2025-.* after event [0-9]+"},
	{"actor is missing", "claimed", `"actor":"[^"]*",`, ``, "actor is missing"},
	{"kind is missing", "claimed", `"kind":"claimed",`, ``, `unknown event kind: ""`},
	{"a line is missing", "claimed", `"pos":[0-9]+`, `"pos":99`,
		"it is event 99, but event [0-9]+ should follow here"},
	{"wrong seq", "claimed", `"seq":2`, `"seq":3`, "claimed with seq 3 after 1"},
	{"no seq", "claimed", `"seq":2`, `"seq":null`, "claimed without a seq"},
	{"seq where there is none", "refused", `"seq":null`, `"seq":9`, "refused with seq 9"},
	{"wrong attempt", "claimed", `"attempt":1`, `"attempt":2`, "claimed as attempt 2 after 0"},
	{"wrong from", "claimed", `"from_state":"queued"`, `"from_state":"running"`, `says it came from "running"`},
	{"wrong to", "claimed", `"to_state":"claimed"`, `"to_state":"running"`, `says it led to "running"`},
	{"no job", "claimed", `"job":"[^"]*"`, `"job":null`, "claimed without a job"},
	{"another job", "claimed", `"job":"[^"]*"`, `"job":"01KDY9FY8800000000000000ZZ"`,
		"which was not enqueued before"},
	{"a job of a queue's event", "queue_paused", `"job":null`, `"job":"01KDY9FY8800000000000000ZZ"`,
		"queue_paused concerns no job"},
	{"no token", "claimed", `"token":"[^"]*"`, `"token":null`, "token of claimed is missing"},
	{"another token", "succeeded", `"token":"[^"]*"`, `"token":"X"`, "but attempt [0-9]+ of .* is live"},
	{"another worker", "succeeded", `"worker":"[^"]*"`, `"worker":"mallory"`,
		`by "mallory", but attempt [0-9]+ of`},
	{"a refused write without a claim", "refused", `"worker":"[^"]*"`, `"worker":"mallory"`,
		`by "mallory", but with this token there is none`},
	{"no lease", "claimed", `"lease_until":"[^"]*",`, ``, "lease_until of claimed is missing"},
	{"no boot", "claimed", `"boot":"[^"]*"`, `"boot":null`, "boot of claimed is missing"},
	{"no queue", "queue_paused", `"queue":"[^"]*",`, ``, "queue of queue_paused is missing"},
	{"no queue of a job", "enqueued", `"queue":"[^"]*",`, ``, "queue of enqueued is missing"},
	{"a queue that cannot be", "enqueued", `"queue":"[^"]*"`, `"queue":"A B"`, `queue "A B" is not allowed`},
	{"a priority that cannot be", "enqueued", `"priority":-?[0-9]+`, `"priority":1000`,
		"priority 1000 is not allowed"},
	{"an id that is none", "enqueued", `"job":"[^"]*"`, `"job":"x"`, `job "x" is not allowed`},
	{"no run_at", "enqueued", `"run_at":"[^"]*",`, ``, "run_at of enqueued is missing"},
	{"another payload", "enqueued", `"payload":"`, `"payload":"x`,
		"is not the one of [0-9]+ bytes whose digest it names"},
	{"another salt", "enqueued", `"salt":"..`, `"salt":"f0`, "whose digest it names"},
	{"a tag twice", "enqueued", `"tags":\{`, `"tags":{"customer":"1",`,
		`field "tags": got .*, want an object of strings, each name once`},
	{"a tag of nothing", "enqueued", `"tags":\{"customer":"17"`, `"tags":{"customer":null`,
		`field "tags": got .*, want an object of strings, each name once`},
	{"half of a character", "claimed", `"actor":"`, `"actor":"\ud800`, `\\ud800 is half of a character`},
	{"a time without end", "claimed", `"lease_until":"[^"]*"`, `"lease_until":1e999`,
		`field "lease_until": got 1e999, want integer microseconds`},
	{"no salt", "enqueued", `,"salt":"[^"]*"`, ``, "payload and salt are only valid as a pair"},
	{"another digest", "enqueued", `"payload_sha256":"..`, `"payload_sha256":"zz`, "whose digest it names"},
	{"another result", "succeeded", `"result":"`, `"result":"x`, "V07: its body of [0-9]+ bytes is not the one"},
	{"a payload of a claim", "claimed", `\}$`, `,"payload":"x"}`, "that is not its own"},
}

// smallHistory returns the exported lines of a small ledger with events of most kinds.
func smallHistory(t *testing.T) []string {
	s := newScenario(t)
	s.lost()
	s.rest()
	var out bytes.Buffer
	if _, err := export.Lines(t.Context(), s.Store, export.Window{Until: 1 << 40},
		export.LinesOptions{Bodies: true}, &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// importing runs the command on text and returns its exit code and stderr.
func importing(t *testing.T, db, text string) (code int, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := printing(0, false)
	var messages bytes.Buffer
	p.Stderr, p.Now = &messages, noon
	code = p.run(t.Context(), []string{"import", file, "--db", db})
	return code, messages.String()
}

func TestImportRefusesDamagedLines(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	lines := smallHistory(t)
	empty := ledgertest.Open(t)
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			n := slices.IndexFunc(lines, func(line string) bool {
				return strings.Contains(line, `"kind":"`+d.kind+`"`) && regexp.MustCompile(d.old).MatchString(line)
			})
			if n < 0 {
				t.Fatalf("no line of kind %s has %s", d.kind, d.old)
			}
			damaged := slices.Clone(lines)
			pattern := regexp.MustCompile(d.old)
			at := pattern.FindStringIndex(lines[n])
			if damaged[n] = lines[n][:at[0]] + d.new + lines[n][at[1]:]; damaged[n] == lines[n] {
				t.Fatalf("nothing is damaged: %s", lines[n])
			}
			folder := t.TempDir()
			for _, db := range []string{filepath.Join(folder, "new.db"), empty.DSN()} {
				code, stderr := importing(t, db, strings.Join(damaged, "\n")+"\n")
				if want := regexp.MustCompile(`^jobledger: line ` + strconv.Itoa(n+1) + `: .*` +
					d.why); code != cli.ExitUsage || !want.MatchString(stderr) {
					t.Errorf("exit code %d\n got %swant %s\nline %s", code, stderr, want, damaged[n])
				}
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	for line, err := range empty.Lines(t.Context(), ledger.Filter{}, false) {
		t.Fatalf("written: %+v, %v", line, err)
	}
}

func TestImportTruncatedHistory(t *testing.T) {
	text := strings.Join(smallHistory(t), "\n") + "\n"
	db := filepath.Join(t.TempDir(), "new.db")
	for _, length := range []int{1, 300, len(text) / 2, len(text) - 2} {
		code, stderr := importing(t, db, text[:length])
		want := "line " + strconv.Itoa(1+strings.Count(text[:length], "\n")) + ": "
		if code != cli.ExitUsage || !strings.Contains(stderr, want) || !strings.Contains(stderr, "cut off") {
			t.Errorf("%d bytes: exit code %d, got %swant %s", length, code, stderr, want)
		}
	}
	// some editors remove it
	if code, stderr := importing(t, db, strings.TrimSuffix(text, "\n")); code != cli.ExitOK {
		t.Errorf("without the last line feed: %d, %s", code, stderr)
	}
}

// TestImportFindsDuplicateIDsAndKeys checks the uniqueness that the tables rely on, wherever the duplicate
// lines are.
func TestImportFindsDuplicateIDsAndKeys(t *testing.T) {
	s := newScenario(t)
	lines := func(change func(lines []string)) string {
		var out bytes.Buffer
		if _, err := export.Lines(t.Context(), s.Store, export.Window{Until: 1 << 40},
			export.LinesOptions{Bodies: true}, &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		change(lines)
		return strings.Join(lines, "\n")
	}
	a := s.enqueue(commands.Enqueue{Queue: "mail", Key: "k1"})
	b := s.enqueue(commands.Enqueue{Queue: "mail", Key: "k2"})
	tests := map[string]func(lines []string){
		`line 2: .*job ` + string(a.ID) + ` is enqueued twice`: func(lines []string) {
			lines[1] = strings.ReplaceAll(lines[1], string(b.ID), string(a.ID))
		},
		`the jobs of events 1 and 2 have the same key "k1" in the queue mail`: func(lines []string) {
			lines[1] = strings.ReplaceAll(lines[1], `"k2"`, `"k1"`)
		},
	}
	for why, change := range tests {
		db := filepath.Join(t.TempDir(), "new.db")
		code, stderr := importing(t, db, lines(change))
		if _, err := os.Stat(db); code != cli.ExitUsage || !regexp.MustCompile(why).MatchString(stderr) ||
			err == nil {
			t.Errorf("exit code %d, got %swant %s", code, stderr, why)
		}
	}
}
