package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rogpeppe/go-internal/testscript"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/verbs/produce"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// raceAtExit saves the hundreds of programs that the tests start the second for which the race detector
// delays every exit.
const raceAtExit = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" "+raceAtExit))
	testscript.Main(tidied{m}, map[string]func(){"jobledger": main, "hasty-jobledger": hastyMain,
		"soak-job": soakJob, "as-root": asRoot})
}

// hasteEnv makes hasty-jobledger carry out an archive policy at once, in files with so many events. It has a
// minute for names at TAB, too, and replaces crontabs at once.
const hasteEnv = "JOBLEDGER_TEST_HASTE"

func hastyMain() {
	cli.NamesWithin, produce.CrontabPause = time.Minute, 0
	if events, err := strconv.ParseInt(os.Getenv(hasteEnv), 10, 64); err == nil {
		archived.Every, archived.Events = 300*time.Millisecond, events
	}
	main()
}

// hasty has cmd run hasty-jobledger in place of jobledger.
func hasty(cmd *exec.Cmd) (err error) {
	cmd.Args[0] = "hasty-jobledger"
	cmd.Path, err = exec.LookPath(cmd.Args[0])
	return err
}

// A missing tool skips the test on a user's machine, and fails it in CI.
func TestToolsInstalledInCI(t *testing.T) {
	if os.Getenv("CI") != "true" {
		t.Skip("CI is not true")
	}
	for _, tool := range []string{"sh", "bash", "zsh", "fish", "setsid", "flock", "python3", "ruby", "php",
		"parallel"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Error(err)
		}
	}
}

// TestScripts runs the scripts, one file per verb. What a script says of $LEDGER holds on each engine; a
// script about files says so at its top.
func TestScripts(t *testing.T) {
	t.Parallel()
	onPostgres := ledgertest.OnPostgres(t)
	testscript.Run(t, scripts(t, "../../testdata/script", func(env *testscript.Env) error {
		dsn := ""
		if onPostgres {
			dsn = ledgertest.Postgres(t)
		}
		return ledgerOf(env, dsn)
	}))
}

// TestScriptsOfPostgres runs the scripts that need a server, whichever engine the others use. $PG is a
// second, empty database.
func TestScriptsOfPostgres(t *testing.T) {
	t.Parallel()
	ledgertest.Postgres(t) // or skip them all
	testscript.Run(t, scripts(t, "../../testdata/script/postgres", func(env *testscript.Env) error {
		env.Setenv("PG", ledgertest.Postgres(t))
		return ledgerOf(env, ledgertest.Postgres(t))
	}))
}

func scripts(t *testing.T, dir string, setUp func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir: dir,
		Condition: func(name string) (bool, error) {
			switch name {
			case "postgres":
				return ledgertest.OnPostgres(t), nil
			case "all": // [!all] skip: a script that is too slow for each "go test ./..."
				return ledgertest.All(), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "sql": runSQL, "capture": capture, "refused": refused, "bytes": writeBytes,
			"reset": reset},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", raceAtExit)
			env.Setenv("USER", "tester")
			history, err := filepath.Abs("../../testdata/history")
			if err != nil {
				return err
			}
			env.Setenv("HISTORY", history)
			if err := setUp(env); err != nil {
				return err
			}
			return os.MkdirAll(env.Getenv("TMPDIR"), 0o700)
		},
	}
}

// ledgerOf returns the ledger of --db in a script: a file unless the environment says otherwise.
func ledgerOf(env *testscript.Env, dsn string) error {
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	env.Setenv(cli.ArchiveCacheEnv, filepath.Join(env.WorkDir, "cache"))
	if dsn == "" {
		env.Setenv("LEDGER", filepath.Join(env.WorkDir, cli.DefaultDB))
		env.Setenv("LOGS", filepath.Join(env.WorkDir, cli.DefaultDB+".logs"))
		return nil
	}
	address, err := ledger.ServerAddress(dsn)
	env.Setenv("JOBLEDGER_DB", dsn)
	env.Setenv("LEDGER", address)
	env.Setenv("LOGS", filepath.Join(env.WorkDir, "state", "jobledger",
		address[strings.LastIndexByte(address, '/')+1:]))
	return err
}

// reset is "reset" in a script: it removes the ledger.
func reset(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: reset")
	}
	if dsn := ts.Getenv("JOBLEDGER_DB"); ledger.IsServerAddress(dsn) {
		_, err := printed(dsn, "SET client_min_messages TO warning; DROP SCHEMA IF EXISTS jobledger CASCADE")
		ts.Check(err)
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".bell", ".logs"} {
		ts.Check(os.RemoveAll(ts.MkAbs(cli.DefaultDB + suffix)))
	}
}

// exits is "exits CODE PROGRAM ARGS…" in a script: exec that requires exactly this exit code.
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

// runSQL is "sql FILE STATEMENT" in a script: it does what a user with a SQLite shell could do to a ledger,
// and prints the rows with columns separated by a bar. jobledger.db is the script's ledger even if that is in
// PostgreSQL.
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sql file statement")
	}
	dsn := ts.Getenv("JOBLEDGER_DB")
	if args[0] != cli.DefaultDB || !ledger.IsServerAddress(dsn) {
		dsn = ts.MkAbs(args[0])
	}
	out, err := printed(dsn, args[1])
	fmt.Fprint(ts.Stdout(), out)
	switch {
	case err != nil && neg:
		fmt.Fprintln(ts.Stderr(), err)
	case err != nil:
		ts.Fatalf("sql: %v", err)
	case neg:
		ts.Fatalf("sql: unexpected success")
	}
}

// printed returns what sqlite3 or psql -At prints for statements.
func printed(dsn, statements string) (string, error) {
	if ledger.IsServerAddress(dsn) {
		return printedByServer(dsn, statements)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.Query(statements)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return out.String(), err
		}
		var line []string
		for _, c := range cells {
			line = append(line, c.String)
		}
		fmt.Fprintln(&out, strings.Join(line, "|"))
	}
	return out.String(), rows.Err()
}

func printedByServer(dsn, statements string) (string, error) {
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, "SET search_path TO jobledger; "+statements).ReadAll()
	var out strings.Builder
	for _, result := range results {
		for _, row := range result.Rows {
			fmt.Fprintf(&out, "%s\n", bytes.Join(row, []byte("|")))
		}
	}
	return out.String(), err
}

// capture is "capture NAME [KEY]" in a script: it stores the output of the last command in a variable, or
// with KEY the value of that key of the JSON object that it printed.
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
