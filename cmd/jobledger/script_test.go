package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// raceAtExit spares the programs that the tests start, hundreds of them, the second for which the race detector
// holds up every exit.
const raceAtExit = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" "+raceAtExit))
	testscript.Main(tidied{m}, map[string]func(){"jobledger": main, "soak-job": soakJob})
}

// A missing tool is a reason to skip on somebody's machine, and a failure where everything must hold.
func TestToolsAreThereInCI(t *testing.T) {
	if os.Getenv("CI") != "true" {
		t.Skip("CI is not true")
	}
	for _, tool := range []string{"sh", "bash", "setsid", "flock"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Error(err)
		}
	}
}

// TestScripts holds conversations with the program, one file per verb.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "sql": runSQL, "capture": capture, "refused": refused, "bytes": writeBytes},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", raceAtExit)
			env.Setenv("USER", "tester")
			history, err := filepath.Abs("../../testdata/history")
			if err != nil {
				return err
			}
			env.Setenv("HISTORY", history)
			return os.MkdirAll(env.Getenv("TMPDIR"), 0o700)
		},
	})
}

// exits is "exits CODE PROGRAM ARGS…" in a script: exec that wants exactly this exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [args...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// runSQL is "sql FILE STATEMENT" in a script: what somebody with a SQLite shell could do to a ledger. It prints the
// rows, their columns separated by a bar.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sql file statement")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer db.Close()
	switch err := printRows(ts, db, args[1]); {
	case err != nil && neg:
		fmt.Fprintln(ts.Stderr(), err)
	case err != nil:
		ts.Fatalf("sql: %v", err)
	case neg:
		ts.Fatalf("sql: unexpected success")
	}
}

func printRows(ts *testscript.TestScript, db *sql.DB, statement string) error {
	rows, err := db.Query(statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		var line []string
		for _, c := range cells {
			line = append(line, c.String)
		}
		fmt.Fprintln(ts.Stdout(), strings.Join(line, "|"))
	}
	return rows.Err()
}

// capture is "capture NAME [KEY]" in a script: what the last command printed becomes a variable; with KEY, what
// stands under that key of the JSON object that it printed.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: capture name [key]")
	}
	value := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 2 {
		var object map[string]any
		ts.Check(json.Unmarshal([]byte(value), &object))
		value = fmt.Sprint(object[args[1]])
	}
	ts.Setenv(args[0], value)
}
