package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/print"
	"jobledger/ledger/ledgertest"
)

// waitsSQL is the SQL of report waits on the views, for SQLite and for PostgreSQL.
var waitsSQL = map[bool]string{
	false: `WITH
  wait AS (SELECT a.queue, (julianday(a.claimed_at) - julianday(max(q.at,
      ifnull(ifnull(q.data ->> 'retry_at', q.data ->> 'run_at'), '')))) * 86400 AS s
    FROM attempts a JOIN history c ON c.job = a.job AND c.attempt = a.attempt AND c.kind = 'claimed'
    JOIN history q ON q.job = a.job AND q.seq = c.seq - 1),
  rank AS (SELECT queue, s, row_number() OVER (PARTITION BY queue ORDER BY s) AS k,
    count(*) OVER (PARTITION BY queue) AS n FROM wait)
  SELECT queue, max(n), printf('%.1f', min(iif(k >= 0.50 * n, s, NULL))),
    printf('%.1f', min(iif(k >= 0.99 * n, s, NULL)))
  FROM rank GROUP BY queue ORDER BY queue`,
	true: `SELECT queue, count(*), to_char(percentile_disc(0.50) WITHIN GROUP (ORDER BY s), 'FM999999990.0'),
    to_char(percentile_disc(0.99) WITHIN GROUP (ORDER BY s), 'FM999999990.0')
  FROM (SELECT a.queue, extract(epoch FROM a.claimed_at::timestamptz - greatest(q.at::timestamptz,
      coalesce(q.data::jsonb ->> 'retry_at', q.data::jsonb ->> 'run_at')::timestamptz)) AS s
    FROM attempts a JOIN history c ON c.job = a.job AND c.attempt = a.attempt AND c.kind = 'claimed'
    JOIN history q ON q.job = a.job AND q.seq = c.seq - 1) AS wait GROUP BY queue ORDER BY queue`,
}

// reportsWithoutSQL are compared with the lines of the export, and not with SQL: see the questions of the
// cookbook, and for left, clocks and costly removal.txtar, TestClocksThatWereBehind and cost.txtar.
var reportsWithoutSQL = []string{"causes", "recovery", "acts", "left", "clocks", "costly"}

type reportRecipe struct {
	report  string
	ask     string
	columns []string
	cut     int // trailing columns of the SQL that the report does not have
}

// reportRecipes are the reports, each with the question of the cookbook that asks the same in SQL, and the
// columns that the SQL returns.
var reportRecipes = []reportRecipe{
	{"taken", "Which jobs were taken from a worker, when, from whom, and who got them next?",
		[]string{"at", "job", "worker", "next_worker", "next_claimed_at", "next_outcome"}, 0},
	{"silent", "Which workers went silent without stopping, in what order, and how many jobs did they lose?",
		[]string{"last_sign_of_life", "worker", "host", "pid", "lost"}, 0},
	{"poison", "Which job has killed two workers?", []string{"job", "workers"}, 0},
	{"failures", "How often did each error code occur, in how many jobs, from when to when?",
		[]string{"code", "count", "jobs", "first", "last"}, 0},
	{"longest --limit 5", "Which attempts lasted longest?",
		[]string{"job", "attempt", "worker", "outcome", "lasted"}, 0},
	{"depth -q mail --from 2026-03-15T01:45Z --to 2026-03-15T02:15:59.999999Z",
		"And by the minute: how many jobs of mail were waiting, and how many held?",
		[]string{"minute", "queued", "held"}, 0},
	{"waits", "", []string{"queue", "claims", "p50", "p99"}, 0},
	{"backlog --from 2026-03-15T01:00Z --to 2026-03-15T04:01Z",
		"What was enqueued between 01:00 and 04:01, and had not ended an hour later?",
		[]string{"job", "enqueued", "state"}, 1},
}

// TestReportEqualsItsSQL compares each report on the bad night with the SQL of the cookbook.
func TestReportEqualsItsSQL(t *testing.T) {
	ledgertest.Slow(t)
	recipes, translated := cookbook(t), inPostgres(t)
	history, err := filepath.Abs("../../testdata/history/bad-night.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TZ", "UTC")
	for _, name := range []string{"JOBLEDGER_DB", "JOBLEDGER_JSON", "JOBLEDGER_ACTOR"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	dsn, onServer := "jobledger.db", ledgertest.OnPostgres(t)
	if onServer {
		dsn = ledgertest.Postgres(t)
		t.Setenv("JOBLEDGER_DB", dsn)
	}
	t.Chdir(t.TempDir())
	asked(t, "import", history)
	if len(reportRecipes)+len(reportsWithoutSQL) != len(print.Reports) {
		t.Errorf("%d reports, %d are compared with SQL and %d are not", len(print.Reports), len(reportRecipes),
			len(reportsWithoutSQL))
	}
	for _, want := range reportRecipes {
		words := strings.Fields(want.report)
		t.Run(words[0], func(t *testing.T) {
			statement := waitsSQL[onServer]
			if want.ask != "" {
				i := slices.IndexFunc(recipes, func(r recipe) bool { return r.ask == want.ask })
				if i < 0 {
					t.Fatal("the cookbook does not ask this")
				}
				if statement = recipes[i].words[len(recipes[i].words)-1]; onServer {
					statement = translated[want.ask]
				}
			}
			sql := strings.Split(strings.TrimSpace(queried(t, dsn, statement)), "\n")
			for i, line := range sql {
				cells := strings.Split(line, "|")
				sql[i] = strings.Join(cells[:len(cells)-want.cut], "|")
			}
			got := reportLines(t, asked(t, append([]string{"report", "--csv"}, words...)...), want.columns)
			switch words[0] {
			case "failures": // the SQL does not order equally frequent codes
				slices.Sort(sql)
				slices.Sort(got)
			case "depth": // the SQL has only the minutes with an event
				got = slices.DeleteFunc(got, func(line string) bool { return !slices.Contains(sql, line) })
			}
			if !slices.Equal(got, sql) || len(sql) == 0 || sql[0] == "" {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(sql, "\n"))
			}
		})
	}
}

// reportLines returns columns of CSV as the SQL of the cookbook prints them.
func reportLines(t *testing.T, text string, columns []string) (lines []string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var cells []string
		for _, name := range columns {
			i := slices.Index(rows[0], name)
			if i < 0 {
				t.Fatalf("no column %s in %q", name, rows[0])
			}
			cell := row[i]
			switch name {
			case "lasted", "p50", "p99":
				seconds, err := strconv.ParseFloat(cell, 64)
				if err != nil {
					t.Fatal(err)
				}
				if cell = fmt.Sprintf("%.1f", seconds); name == "lasted" {
					cell += "s"
				}
			case "minute":
				cell = cell[:len("2026-03-15T01:45")]
			}
			cells = append(cells, cell)
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return lines
}
