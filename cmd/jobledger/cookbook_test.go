package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// recipe is one question of the cookbook.
type recipe struct {
	ask   string
	words []string // the arguments of the command
	file  string   // for its output; "" without >
	shown []string // the part of the answer that the page shows
}

// cookbook reads the recipes from docs/cookbook.md: in a block of sh, a line "# question", the lines of the
// command, and lines "# …" of its answer.
func cookbook(t *testing.T) []recipe {
	t.Helper()
	page, err := os.ReadFile("docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []recipe
	for i, block := range strings.Split(string(page), "```") {
		block, isShell := strings.CutPrefix(block, "sh\n")
		if i%2 == 0 || !isShell {
			continue
		}
		for _, part := range strings.Split(strings.TrimSpace(block), "\n\n") {
			lines := strings.Split(part, "\n")
			r := recipe{ask: strings.TrimPrefix(lines[0], "# ")}
			end := len(lines)
			for end > 1 && strings.HasPrefix(lines[end-1], "#   ") {
				end--
				r.shown = slices.Insert(r.shown, 0, strings.TrimSpace(lines[end][1:]))
			}
			r.words, r.file = splitShell(t, strings.Join(lines[1:end], "\n"))
			if r.ask == lines[0] || len(r.words) < 2 {
				t.Fatalf("the cookbook has a question without a command, or the other way round:\n%s", part)
			}
			all = append(all, r)
		}
	}
	return all
}

// splitShell splits a command as a shell does, as far as the cookbook needs it. A redirection >FILE is last.
func splitShell(t *testing.T, command string) (words []string, file string) {
	t.Helper()
	for i, piece := range strings.Split(command, `"`) {
		if i%2 == 1 {
			if strings.ContainsAny(piece, "$`\\") {
				t.Fatalf("a shell would change what stands between the quotes: %s", piece)
			}
			words = append(words, piece)
			continue
		}
		if strings.ContainsAny(piece, "'|&;\n$`*") {
			t.Fatalf("more of a shell than this test knows: %s", command)
		}
		words = append(words, strings.Fields(piece)...)
	}
	if file, isFile := strings.CutPrefix(words[len(words)-1], ">"); isFile {
		return words[:len(words)-1], file
	}
	return words, ""
}

// morning is the time at which the questions are asked.
var morning = time.Date(2026, 3, 15, 8, 0, 0, 0, time.UTC)

// asked returns the output of the program for these arguments, in the current folder.
func asked(t *testing.T, words ...string) string {
	t.Helper()
	code, out, messages := runInTheMorning(words...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, messages)
	}
	return out
}

func runInTheMorning(words ...string) (code int, stdout, stderr string) {
	var out, messages bytes.Buffer
	p := &program{&cli.Program{Stdout: bufio.NewWriter(&out), Stderr: &messages,
		Now: func() time.Time { return morning }}}
	code = p.run(context.Background(), words)
	return code, out.String(), messages.String()
}

// inPostgres maps the questions of the cookbook to their statements for PostgreSQL.
func inPostgres(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../schema/postgres/cookbook.sql")
	if err != nil {
		t.Fatal(err)
	}
	statements := make(map[string]string)
	// skip the title and the path
	for _, part := range strings.Split(strings.TrimSpace(string(text)), "\n\n")[2:] {
		ask, statement, _ := strings.Cut(part, "\n")
		statements[strings.TrimPrefix(ask, "-- ")] = statement
	}
	return statements
}

// queried returns what sqlite3, or psql -At, prints for this statement, whether or not it is installed.
func queried(t *testing.T, dsn, statement string) string {
	t.Helper()
	out, err := printed(dsn, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return out
}

// sqliteShell is the path of sqlite3; "" if it is missing or too old for the operator ->>.
func sqliteShell() string {
	path, err := exec.LookPath("sqlite3")
	if err != nil || exec.Command(path, ":memory:", `SELECT '{}' ->> 'x'`).Run() != nil {
		return ""
	}
	return path
}

// howLong matches durations, which differ from run to run.
var howLong = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`checked in [0-9.]+[a-zµ]+`)
})

// importWhereAsked imports a history into the ledger that commands without an address use from now on, in an
// empty folder and on the engine of the tests.
func importWhereAsked(t *testing.T, history string) {
	t.Helper()
	t.Setenv("TZ", "UTC")
	for _, name := range []string{"JOBLEDGER_DB", "JOBLEDGER_JSON", "JOBLEDGER_ACTOR"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	if ledgertest.OnPostgres(t) {
		t.Setenv("JOBLEDGER_DB", ledgertest.Postgres(t))
	}
	t.Chdir(t.TempDir())
	asked(t, "import", history)
}

// Each line of the cookbook is run. The golden files hold the expected output. The checks, which use only the
// lines of the exported history, verify that it is true.
func TestCookbookAnswers(t *testing.T) {
	recipes, translated := cookbook(t), inPostgres(t)
	history, err := filepath.Abs("../../testdata/history/bad-night.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	goldens, err := filepath.Abs("../../testdata/golden/cookbook")
	if err != nil {
		t.Fatal(err)
	}
	if len(recipes) != len(answers) {
		t.Errorf("%d questions in the cookbook, %d checks here", len(recipes), len(answers))
	}
	if *update {
		if err := os.RemoveAll(goldens); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(goldens, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := readNight(t, history)
	importWhereAsked(t, history)
	shell := sqliteShell()
	for i, r := range recipes {
		t.Run(fmt.Sprintf("%02d", i+1), func(t *testing.T) {
			t.Log(r.ask)
			check := answers[r.ask]
			if check == nil {
				t.Fatal("there is no check of this answer")
			}
			var out string
			switch {
			case r.words[0] == "jobledger":
				out = asked(t, r.words[1:]...)
			case len(r.words) == 4 && r.words[0] == "sqlite3" && r.words[1] == "-readonly":
				statement, isThere := translated[r.ask]
				if delete(translated, r.ask); !isThere {
					t.Error("schema/postgres/cookbook.sql does not ask this")
				}
				if dsn := os.Getenv("JOBLEDGER_DB"); dsn != "" {
					out = queried(t, dsn, statement)
					break
				}
				if out = queried(t, r.words[2], r.words[3]); shell == "" {
					break
				}
				if got, err := exec.Command(shell, r.words[1:]...).CombinedOutput(); err != nil || string(got) != out {
					t.Errorf("%s: %v; got\n%swant\n%s", shell, err, got, out)
				}
			default:
				t.Fatalf("cannot run %q", r.words)
			}
			if r.file != "" {
				if err := os.WriteFile(r.file, []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, line := range r.shown {
				if !strings.Contains("\n"+out, "\n"+line+"\n") {
					t.Errorf("the cookbook shows %q; got\n%s", line, out)
				}
			}
			check(n, &answer{t: t, out: out})
			if r.file != "" {
				return // too long for a golden file; the check reads it
			}
			golden := filepath.Join(goldens, fmt.Sprintf("%02d.txt", i+1))
			got := "# " + r.ask + "\n" + howLong().ReplaceAllString(out, "checked in …")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || got != string(want) {
				t.Errorf("%v; got\n%s", err, got)
			}
		})
	}
	for ask := range translated {
		t.Errorf("schema/postgres/cookbook.sql asks what the cookbook does not: %s", ask)
	}
}

// TestDocsViewsColumns checks that docs/views.md names the columns of the views, on which users rely.
func TestDocsViewsColumns(t *testing.T) {
	page, err := os.ReadFile("docs/views.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newScenario(t)
	for _, view := range []string{"history", "attempts", "current"} {
		columns, _ := rowsOf(t, s.Store.DSN(), `SELECT * FROM `+view)
		_, row, _ := strings.Cut(string(page), "\n| `"+view+"` | ")
		if _, row, _ = strings.Cut(row, "| `"); !strings.HasPrefix(row, strings.Join(columns, ", ")+"`") ||
			len(columns) < 5 {
			t.Errorf("%s: want %s", view, strings.Join(columns, ", "))
		}
	}
}

// The clock of the bad night was correct; this history has one that was set back.
func TestCookbookFindsClockSetBack(t *testing.T) {
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	s.enqueue(commands.Enqueue{Queue: "mail"})
	s.claim("w1", "mail")
	s.wait(-40 * time.Second)
	s.Now = s.Now.Add(time.Second)
	s.enqueue(commands.Enqueue{Queue: "web", RunAt: s.Now.Add(-time.Hour)})
	s.claim("w1", "web")
	for _, r := range cookbook(t) {
		if strings.HasPrefix(r.ask, "Was a clock wrong?") {
			statement := r.words[len(r.words)-1]
			if ledger.IsServerAddress(s.Store.DSN()) {
				statement = inPostgres(t)[r.ask]
			}
			out := queried(t, s.Store.DSN(), statement)
			if !strings.HasPrefix(out, "21s|1|") || !strings.Contains(out, "\n60s|1|") {
				t.Errorf("got\n%s", out)
			}
			return
		}
	}
	t.Error("no such question")
}
