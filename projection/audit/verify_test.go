package audit_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"pgregory.net/rapid"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
	"jobledger/projection/internal/table"
	"jobledger/projection/rebuild"
)

func verify(t testing.TB, s *ledger.Store) audit.Verified {
	t.Helper()
	var v audit.Verified
	err := s.Read(context.Background(), func(tx *ledger.Tx) (err error) {
		v, err = audit.Verify(context.Background(), tx, nil)
		return err
	})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	step := max(3, v.Events/50) // a step reads a whole page of events
	inSteps, err := audit.VerifyInSteps(context.Background(), s, 0, step, func() {})
	withoutStructure := slices.DeleteFunc(slices.Clone(v.Findings), func(f audit.Finding) bool {
		return f.Code == audit.FindStructure
	})
	if err != nil || !slices.Equal(inSteps.Findings, withoutStructure) || inSteps.Events != v.Events ||
		inSteps.Jobs != v.Jobs || inSteps.Until != v.Until || inSteps.Stopped != v.Stopped {
		t.Errorf("verified in steps: %+v, %v; at once: %+v", inSteps, err, v)
	}
	return v
}

func wantClean(t testing.TB, s *ledger.Store) {
	t.Helper()
	for _, f := range verify(t, s).Findings {
		t.Errorf("verify: %+v", f)
	}
}

// recorded returns the bytes of a closed ledger file that holds v1.
func recorded(t testing.TB) []byte { return recordedHistory(t, "v1.jsonl") }

// recordedHistory returns the bytes of a closed ledger file that holds this history.
func recordedHistory(t testing.TB, name string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	historytest.Record(t, s, historytest.Read(t, name))
	wantClean(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func fileURL(path string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_pragma=busy_timeout(5000)"}
	return u.String()
}

// raw runs statements on a ledger file that no process has open, as a user with a shell would.
func raw(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", fileURL(path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// unguarded runs statements without any triggers, and restores the triggers.
func unguarded(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", fileURL(path))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(context.Background(),
		`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	var drop, create []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		drop, create = append(drop, `DROP TRIGGER `+name), append(create, text)
	}
	if err := rows.Err(); err != nil || len(drop) == 0 {
		t.Fatal(drop, err)
	}
	rows.Close()
	db.Close()
	raw(t, path, slices.Concat(drop, statements, create)...)
}

// damaged returns what Verify finds in a copy of file after these statements.
func damaged(t testing.TB, file []byte, statements ...string) audit.Verified {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	unguarded(t, path, statements...)
	return verify(t, ledgertest.OpenAt(t, path))
}

const (
	job1 = `(SELECT n FROM jobs WHERE id = '01KDXYZAF80000000000000001')` // succeeded
	job2 = `(SELECT n FROM jobs WHERE id = '01KDXYZAF80000000000000002')` // running
)

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	one := func(code string) []string { return []string{code} }
	for _, test := range []struct {
		name   string
		damage []string
		codes  []string // the set of codes that must be found; no others may be
		field  string   // of the first finding with the first code
	}{
		{"nothing", nil, nil, ""},
		{"an event removed", one(`DELETE FROM events WHERE kind = 11 AND ulid = 'guess'`), one(audit.FindGap), ""},
		{"a transition removed", one(`DELETE FROM events WHERE kind = 3 AND job = ` + job1),
			[]string{audit.FindGap, audit.FindIllegal}, ""},
		{"seq swapped", []string{
			`UPDATE events SET seq = 99 WHERE seq = 3 AND job = ` + job1,
			`UPDATE events SET seq = 3 WHERE seq = 4 AND job = ` + job1,
			`UPDATE events SET seq = 4 WHERE seq = 99 AND job = ` + job1}, one(audit.FindIllegal), ""},
		{"at earlier than the event before", one(`UPDATE events SET at = at - 5000000 WHERE kind = 4 AND job = ` +
			job1), []string{audit.FindClock, audit.FindDiffers}, ""},
		{"at altered by a microsecond", one(`UPDATE events SET at = at + 1 WHERE kind = 4 AND job = ` + job1),
			one(audit.FindDiffers), "finished_at"},
		{"another worker's ending",
			one(`UPDATE events SET worker = (SELECT worker FROM events WHERE kind = 2 AND job = ` + job2 +
				`) WHERE kind = 4 AND job = ` + job1), one(audit.FindIllegal), ""},
		{"another token of the live claim",
			one(`UPDATE events SET ulid = 'X' WHERE kind = 2 AND attempt = 6 AND job = ` + job2),
			one(audit.FindDiffers), "lease_token"},
		{"no token", one(`UPDATE events SET ulid = '' WHERE kind = 2 AND attempt = 6 AND job = ` + job2),
			one(audit.FindIllegal), ""},
		{"another attempt's ending", one(`UPDATE events SET attempt = 2 WHERE kind = 4 AND job = ` + job1),
			one(audit.FindIllegal), ""},
		{"an attempt used again", one(`UPDATE events SET attempt = 1 WHERE kind = 2 AND attempt = 2 AND job = ` +
			job2), one(audit.FindIllegal), ""},
		{"claims that overlap",
			one(
				`UPDATE events SET kind = 2, attempt = 2, ulid = 'X', data = NULL WHERE kind = 3 AND seq = 3 AND job = ` +
					job1), one(audit.FindIllegal), ""},
		{"an ending without a claim",
			one(`UPDATE events SET kind = 10, data = '{"run_at":1}' WHERE kind = 2 AND job = ` + job1),
			one(audit.FindIllegal), ""},
		{"another from", one(`UPDATE events SET from_state = 3 WHERE kind = 3 AND seq = 3 AND job = ` + job1),
			one(audit.FindIllegal), ""},
		{"another to", one(`UPDATE events SET to_state = 5 WHERE kind = 4 AND job = ` + job1),
			one(audit.FindIllegal), ""},
		{"enqueued in another job's name", one(`UPDATE events SET job = 1 WHERE pos = ` + job1),
			one(audit.FindIllegal), ""},
		{"a job's id", one(`UPDATE events SET ulid = '01KDXYZAF8000000000000000X' WHERE pos = ` + job1),
			one(audit.FindDiffers), "id"},
		{"data that is not JSON", one(`UPDATE events SET data = '{' WHERE kind = 4 AND job = ` + job1),
			one(audit.FindDamaged), ""},
		{"data with a field too many", one(
			`UPDATE events SET data = json_set(data, '$.extra', 1) WHERE kind = 4 AND job = ` + job1),
			one(audit.FindDamaged), ""},
		{"an unknown kind", one(`UPDATE events SET kind = 99 WHERE kind = 4 AND job = ` + job1),
			one(audit.FindDamaged), ""},
		{"an actor without a name", one(`UPDATE events SET actor = 99 WHERE kind = 4 AND job = ` + job1),
			one(audit.FindDamaged), ""},
		{"a queue paused twice", one(`UPDATE events SET data = replace(data, 'video', 'mail') WHERE kind = 13`),
			one(audit.FindIllegal), ""},
		{"a body altered", one(`UPDATE bodies SET body = CAST('Payload of 001' AS BLOB) WHERE pos = ` + job1),
			one(audit.FindBody), ""},
		{"a result altered",
			one(`UPDATE bodies SET body = x'00' WHERE pos = (SELECT pos FROM events WHERE kind = 4 AND job = ` + job1 +
				`)`), one(audit.FindBody), ""},
		{"a salt altered", one(`UPDATE bodies SET salt = x'00' WHERE pos = ` + job1), one(audit.FindBody), ""},
		{"a body removed", one(`DELETE FROM bodies WHERE pos = ` + job2), one(audit.FindBody), ""},
		{"a body too many",
			one(`INSERT INTO bodies VALUES ((SELECT min(pos) FROM events WHERE kind = 3), NULL, x'00')`),
			one(audit.FindBody), ""},
		{"a body beyond the last event", one(`INSERT INTO bodies VALUES (1000, NULL, x'00')`), one(audit.FindBody),
			""},
		{"a body that was erased",
			one(`INSERT INTO bodies VALUES ((SELECT n FROM jobs WHERE id LIKE '%005'), NULL, x'00')`),
			one(audit.FindBody), ""},
		{"a row missing", one(`DELETE FROM jobs WHERE n = ` + job1), one(audit.FindMissing), ""},
		{"a row too many",
			one(
				`INSERT INTO jobs SELECT 1, 'X', seq, state, lane, queue, priority, run_at, NULL, attempt, failures,
snoozes, max_attempts, max_runtime, worker,
			lease_token, claimed_at, heartbeat_at, lease_expires_at, end_by, finished_at, error_code, more
FROM jobs WHERE n = ` + job1), one(audit.FindExtra), ""},
		{"a row beyond the last event", one(`UPDATE jobs SET n = 1000 WHERE n = ` + job1),
			[]string{audit.FindMissing, audit.FindExtra}, ""},
		{"a queue's row missing", one(`DELETE FROM queues`), one(audit.FindQueue), ""},
		{"a queue resumed in secret", one(`UPDATE queues SET paused = 1 - paused`), one(audit.FindQueue), "paused"},
		{"a queue too many", one(`INSERT INTO queues VALUES (99, 1, 1, 1, NULL)`), one(audit.FindQueue), ""},
		{"a claim before run_at",
			one(`UPDATE events SET data = json_set(data, '$.run_at', at + 3600000000) WHERE pos = ` + job1),
			[]string{audit.FindEarly, audit.FindDiffers}, ""},
		{"a claim from a paused queue", one(`UPDATE events SET kind = 18, data = NULL WHERE kind = 14`),
			[]string{audit.FindEarly, audit.FindQueue}, ""},
		{"a reclaim before the lease's end",
			one(`UPDATE events SET data = json_set(data, '$.lease_until', at + 1) WHERE kind = 7 AND job = ` + job2),
			one(audit.FindReclaim), ""},
		{"a reclaim with another last heartbeat",
			one(`UPDATE events SET data = json_set(data, '$.last_heartbeat', at) WHERE kind = 7 AND job = ` + job2),
			one(audit.FindReclaim), ""},
		{"a retry beyond max_attempts", one(
			`UPDATE events SET data = replace(data, ',"payload_bytes"', ',"max_attempts":1,"payload_bytes"')
WHERE pos = ` + job2), []string{audit.FindTooOften, audit.FindDiffers}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := damaged(t, file, test.damage...)
			var codes []string
			for _, f := range v.Findings {
				if !slices.Contains(codes, f.Code) {
					codes = append(codes, f.Code)
				}
				if f.Detail == "" {
					t.Errorf("a finding without a word: %+v", f)
				}
			}
			slices.Sort(codes)
			want := slices.Sorted(slices.Values(test.codes))
			if !slices.Equal(codes, want) {
				t.Fatalf("found %v, want %v: %+v", codes, want, v.Findings)
			}
			if test.field != "" && v.Findings[0].Field != test.field {
				t.Errorf("found %+v, want the field %s", v.Findings[0], test.field)
			}
			if stopped := slices.Contains(codes, audit.FindDamaged) ||
				slices.Contains(codes, audit.FindIllegal); v.Stopped != stopped {
				t.Errorf("stopped: %t", v.Stopped)
			}
		})
	}
}

func TestVerifyFindsMissingGuards(t *testing.T) {
	file := recorded(t)
	for name, statements := range map[string][]string{
		"trigger events_no_update is missing":  {`DROP TRIGGER events_no_update`},
		"trigger bodies_no_replace is missing": {`DROP TRIGGER bodies_no_replace`},
		"index ready is missing":               {`DROP INDEX ready`},
		"view history is missing":              {`DROP VIEW history`},
		"trigger events_only_append was altered": {`DROP TRIGGER events_only_append`,
			`CREATE TRIGGER events_only_append BEFORE INSERT ON events WHEN 0 BEGIN SELECT 1; END`},
		"trigger sly is not part of the schema": {
			`CREATE TRIGGER sly AFTER INSERT ON jobs BEGIN UPDATE jobs SET priority = 100 WHERE n = NEW.n; END`,
		},
		"index leases was altered": {`DROP INDEX leases`,
			`CREATE INDEX leases ON jobs (lease_expires_at)`},
		"row 2 missing from index keys": {`PRAGMA writable_schema = ON`,
			`UPDATE sqlite_schema SET sql = replace(sql, 'key IS NOT NULL', 'key IS NULL') WHERE name = 'keys'`},
		"index keys was altered": {`PRAGMA writable_schema = ON`,
			`UPDATE sqlite_schema SET sql = replace(sql, 'key IS NOT NULL', 'key IS NULL') WHERE name = 'keys'`},
		"table names was altered":            {`ALTER TABLE names ADD COLUMN x TEXT`},
		"trigger names_no_delete is missing": {`DROP TRIGGER names_no_delete`, `DROP TRIGGER names_no_update`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			raw(t, path, statements...)
			v := verify(t, ledgertest.OpenAt(t, path))
			for _, f := range v.Findings {
				if strings.HasPrefix(f.Detail, name) && (f.Code == audit.FindGuard || f.Code == audit.FindStructure) {
					return
				}
			}
			t.Errorf("got %+v", v.Findings)
		})
	}
}

// TestVerifyNamesEachDamagedColumn alters each column of the row of a running job, of an ended one, and of a
// queued one.
func TestVerifyNamesEachDamagedColumn(t *testing.T) {
	t.Parallel()
	file := recorded(t)
	path := filepath.Join(t.TempDir(), "jobs.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s := ledgertest.OpenAt(t, path)
	ids := []string{"01KDXYZAF80000000000000002", "01KDXYZAF80000000000000001", "01KDXYZAF80000000000000003"}
	for _, id := range ledgertest.Sample(ids, len(ids)) {
		for _, column := range table.Columns {
			if column == "n" {
				continue // changes another row: see TestVerifyFinds
			}
			value := fmt.Sprintf(`coalesce(%s, 0) + 1`, column)
			if slices.Contains([]string{"id", "lane", "key", "lease_token", "error_code", "more"}, column) {
				value = fmt.Sprintf(`coalesce(%s, '') || 'x'`, column)
			}
			var n int64
			err := s.Read(t.Context(), func(tx *ledger.Tx) error {
				j, _, err := projection.Get(t.Context(), tx, event.JobID(id))
				n = j.N
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			raw(t, path, fmt.Sprintf(`CREATE TABLE keep AS SELECT %s AS v FROM jobs WHERE n = %d`, column, n),
				fmt.Sprintf(`UPDATE jobs SET %s = %s WHERE n = %d`, column, value, n))
			v := verify(t, s)
			if len(v.Findings) != 1 || v.Findings[0].Code != audit.FindDiffers || v.Findings[0].Field != column ||
				v.Findings[0].Job != event.JobID(id) {
				t.Errorf("%s of %s: found %+v", column, id, v.Findings)
			}
			raw(t, path, fmt.Sprintf(`UPDATE jobs SET %s = (SELECT v FROM keep) WHERE n = %d`, column, n),
				`DROP TABLE keep`)
		}
	}
	wantClean(t, s)
}

// dump returns the tables jobs and queues as they are stored.
func dump(t testing.TB, s *ledger.Store) (lines []string) {
	t.Helper()
	err := s.Read(context.Background(), func(tx *ledger.Tx) error {
		array := "json_array"
		if ledger.IsServerAddress(s.DSN()) {
			array = "json_build_array"
		}
		for _, query := range []string{`SELECT ` + array + `(` + strings.Join(table.Columns[:], ", ") +
			`) FROM jobs ORDER BY n`,
			`SELECT ` + array + `(queue, paused, since, actor, reason) FROM queues ORDER BY queue`} {
			rows, err := tx.Query(context.Background(), query)
			if err != nil {
				return err
			}
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					return err
				}
				lines = append(lines, line)
			}
			if err := rows.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// damager returns a function that runs a statement as a user with the database's shell would. It ignores
// statements that the types and constraints of the tables refuse.
func damager(t *testing.T, s *ledger.Store) func(statement string) error {
	t.Helper()
	if ledger.IsServerAddress(s.DSN()) {
		conn, err := pgx.Connect(t.Context(), s.DSN())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return func(statement string) error {
			_, err := conn.Exec(t.Context(), `SET search_path = jobledger; `+statement)
			if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code[:2] == "22" || e.Code[:2] == "23") {
				return nil
			}
			return err
		}
	}
	db, err := sql.Open("sqlite", fileURL(s.Path()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return func(statement string) error {
		_, err := db.ExecContext(t.Context(), statement)
		if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT {
			return nil
		}
		return err
	}
}

// TestRebuildRepairsAnyDamage: a rebuild restores the fold of the events, whatever damage the tables have.
func TestRebuildRepairsAnyDamage(t *testing.T) {
	t.Parallel()
	s := ledgertest.Open(t)
	historytest.Record(t, s, historytest.Read(t, "v1.jsonl"))
	want, damage := dump(t, s), damager(t, s)
	numbers := []string{"seq", "state", "queue", "priority", "run_at", "attempt", "failures", "snoozes",
		"max_attempts", "max_runtime", "worker",
		"claimed_at", "heartbeat_at", "lease_expires_at", "end_by", "finished_at"}
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(query string) string { return fmt.Sprintf(query, rapid.IntRange(0, 10).Draw(rt, "row")) }
		any := `(SELECT n FROM jobs ORDER BY n LIMIT 1 OFFSET %d)`
		var statements []string
		for range rapid.IntRange(1, 8).Draw(rt, "damages") {
			switch rapid.IntRange(0, 7).Draw(rt, "damage") {
			case 0:
				statements = append(statements, `DELETE FROM jobs WHERE n = `+pick(any))
			case 1:
				statements = append(statements, fmt.Sprintf(`UPDATE jobs SET %s = %d WHERE n = `,
					rapid.SampledFrom(numbers).Draw(rt, "column"), rapid.IntRange(0, 99).Draw(rt, "value"))+pick(any))
			case 2:
				statements = append(statements, fmt.Sprintf(`UPDATE jobs SET %s = '%s' WHERE n = `,
					rapid.SampledFrom([]string{"lane", "lease_token", "error_code", "more"}).Draw(rt, "column"),
					rapid.SampledFrom([]string{"", "x", "{}", "mail 100 "}).Draw(rt, "text"))+pick(any))
			case 3: // the ids or the keys of two rows are swapped
				a, b := pick(any), pick(any)
				statements = append(statements, `CREATE TABLE swap AS SELECT `+a+` AS a, `+b+
					` AS b, (SELECT id FROM jobs WHERE n = `+a+`) AS ida, (SELECT id FROM jobs WHERE n = `+b+`) AS idb`,
					`UPDATE jobs SET id = 'swapping' WHERE n = (SELECT a FROM swap WHERE a <> b)`,
					`UPDATE jobs SET id = (SELECT ida FROM swap) WHERE n = (SELECT b FROM swap WHERE a <> b)`,
					`UPDATE jobs SET id = (SELECT idb FROM swap) WHERE n = (SELECT a FROM swap WHERE a <> b)`,
					`DROP TABLE swap`)
			case 4:
				statements = append(statements, `UPDATE jobs SET queue = 3, key = 'k4' WHERE n = `+pick(any))
			case 5: // another number: one row missing, one too many
				statements = append(statements, `UPDATE jobs SET n = n + `+
					fmt.Sprint(rapid.IntRange(1, 2000).Draw(rt, "by"))+` WHERE n = `+pick(any))
			case 6:
				statements = append(statements, `DELETE FROM queues WHERE paused = `+
					fmt.Sprint(rapid.IntRange(0, 1).Draw(rt, "paused")))
			case 7:
				queue := fmt.Sprint(rapid.IntRange(1, 9).Draw(rt, "queue"))
				statements = append(statements, `DELETE FROM queues WHERE queue = `+queue, `INSERT INTO queues VALUES (`+
					queue+`, 1, 5, 1, 'x')`)
			}
		}
		for _, statement := range statements {
			if err := damage(statement); err != nil {
				rt.Fatalf("%s: %v", statement, err)
			}
		}
		rebuild := func() (r rebuild.Report) {
			err := s.Write(context.Background(), func(tx *ledger.Tx) (err error) {
				r, err = rebuild.All(context.Background(), tx)
				return err
			})
			if err != nil {
				rt.Fatalf("rebuild after %q: %v", statements, err)
			}
			return r
		}
		rebuild()
		if got := dump(t, s); !slices.Equal(got, want) {
			rt.Fatalf("after %q\n got %s\nwant %s", statements, strings.Join(got, "\n     "),
				strings.Join(want, "\n     "))
		}
		if r := rebuild(); r.Changed+r.Missing+r.Extra+r.Queues != 0 || r.Jobs != 10 {
			rt.Fatalf("a second rebuild changed something: %+v", r)
		}
	})
	wantClean(t, s)
}
