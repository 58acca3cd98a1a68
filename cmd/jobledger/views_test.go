package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// rowsOf runs a query as a user of the database's shell would, and returns its columns and rows.
func rowsOf(t *testing.T, dsn, query string, args ...any) (columns []string, rows []map[string]any) {
	t.Helper()
	if ledger.IsServerAddress(dsn) {
		return serverRowsOf(t, dsn, query, args...)
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer found.Close()
	columns, _ = found.Columns()
	for found.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := found.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make(map[string]any)
		for i, c := range columns {
			row[c] = cells[i]
		}
		rows = append(rows, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return columns, rows
}

func serverRowsOf(t *testing.T, dsn, query string, args ...any) (columns []string, rows []map[string]any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `SET search_path TO jobledger`); err != nil {
		t.Fatal(err)
	}
	found, err := conn.Query(t.Context(), strings.ReplaceAll(query, "?", "$1"), args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, f := range found.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	rows, err = pgx.CollectRows(found, pgx.RowToMap)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return columns, rows
}

// jsonRow decodes the JSON of v.
func jsonRow(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	row := make(map[string]any)
	if err := json.Unmarshal(text, &row); err != nil {
		t.Fatal(err)
	}
	return row
}

// same compares a cell of a view with the field of the same name in JSON.
func same(t *testing.T, cell, want any) bool {
	t.Helper()
	switch w := want.(type) {
	case map[string]any, []any:
		var got any
		if err := json.Unmarshal([]byte(fmt.Sprint(cell)), &got); err != nil {
			return false
		}
		return reflect.DeepEqual(got, want)
	case float64:
		return fmt.Sprint(cell) == fmt.Sprint(int64(w)) || cell == w
	}
	return cell == want
}

// archiveBlock records that the first block of events was archived, after as many as it takes.
func archiveBlock(t *testing.T, s *commands.Service) {
	t.Helper()
	now := s.Store.Now()
	what := event.Archived{Hi: proof.BlockSize, SHA256: strings.Repeat("0", 64), Bytes: 9, FirstAt: now,
		LastAt: now, Reason: "yearly"}
	err := s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		jobs := int64(0)
		for e, err := range tx.Events(t.Context(), ledger.Filter{Kinds: []event.Kind{event.KindEnqueued}}) {
			if err != nil {
				return err
			}
			jobs += e.Seq
		}
		var err error
		for err == nil && tx.Next() <= proof.BlockSize {
			err = tx.Append(t.Context(), event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:ada@build7",
				Body: &event.Rebuilt{Jobs: jobs}})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		events, err := tree.New(t.Context(), tx, nil)
		if err != nil {
			return err
		}
		root, err := events.Root(t.Context(), what.Hi)
		what.Root = root.String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Record(t.Context(), s, "cli:ada@build7", what); err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		parts := map[string]string{"idx": what.SHA256, "sum": what.SHA256}
		for _, b := range []event.Body{&event.Removed{Hi: what.Hi, Reason: "yearly"},
			&event.ArchiveDescribed{Hi: what.Hi, Parts: parts},
			&event.ArchivePolicy{OlderThan: 90 * 24 * time.Hour, KeepFailed: 365 * 24 * time.Hour}} {
			e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:ada@build7", Body: b}
			if err := tx.Append(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// loseClaim has a job's claim taken over and cancelled, and its command reported first as one that cannot be
// ended, then as ended.
func loseClaim(t *testing.T, s *commands.Service) error {
	first := event.Worker{Name: "w7", Boot: "01KKQGAZ43CWGCX9CD0BRFPDBA", Host: "h", PID: 7}
	next := event.Worker{Name: "w7", Boot: "01KKQGAZ43CWGCX9CD0BRFPDBB", Host: "h", PID: 8}
	if _, err := s.Enqueue(t.Context(), "cli:ada@desk", commands.Enqueue{Queue: "lost"}); err != nil {
		return err
	}
	jobs, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"lost"}, Worker: first, Limit: 1})
	if err != nil {
		return err
	}
	for _, c := range []commands.Command{
		commands.TakeOver{Token: jobs[0].Token, Process: next, Lease: time.Minute},
		commands.Cancel{},
		commands.Heartbeat{Token: jobs[0].Token, Lease: time.Minute, CannotEnd: "pid 9 (sudo) belongs to root"},
		commands.ReportStop{Token: jobs[0].Token, Signal: "SIGKILL"},
	} {
		if _, err := s.Apply(t.Context(), "worker:w7", jobs[0].ID, c); err != nil &&
			!errors.Is(err, commands.ErrCancelled) {
			return err
		}
	}
	return nil
}

func TestViewHistoryIsTheEvents(t *testing.T) {
	s := newScenario(t)
	s.lost()
	s.rest()
	s.cancelled()
	if err := loseClaim(t, s.Service); err != nil {
		t.Fatal(err)
	}
	arrange(t, s.Service, s.wait)
	archiveBlock(t, s.Service)
	columns, rows := rowsOf(t, s.Store.DSN(), `SELECT * FROM history ORDER BY pos`)
	want := []string{"pos", "job", "seq", "kind", "at", "actor", "worker", "token", "attempt", "from_state",
		"to_state", "data"}
	if !slices.Equal(columns, want) {
		t.Fatalf("columns %v, want %v", columns, want)
	}
	kinds := make(map[event.Kind]bool)
	var events []event.Event
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			events = append(events, e)
			kinds[e.Kind()] = true
		}
		return nil
	})
	if err != nil || len(events) != len(rows) {
		t.Fatalf("%d rows for %d events, %v", len(rows), len(events), err)
	}
	for i, e := range events {
		public := jsonRow(t, e)
		data := public["data"].(map[string]any)
		delete(public, "data")
		for name, value := range public {
			if !same(t, rows[i][name], value) {
				t.Errorf("event %d (%s): %s is %v, want %v", e.Pos, e.Kind(), name, rows[i][name], value)
			}
		}
		var shown map[string]any
		if err := json.Unmarshal([]byte(rows[i]["data"].(string)), &shown); err != nil {
			t.Fatal(err)
		}
		for name, value := range data {
			got, ok := shown[name]
			delete(shown, name)
			if ok && !reflect.DeepEqual(got, value) || !ok && !empty(value) {
				t.Errorf("event %d (%s): %s in data is %v, want %v", e.Pos, e.Kind(), name, got, value)
			}
		}
		if len(shown) > 0 {
			t.Errorf("event %d (%s): too much in data: %v", e.Pos, e.Kind(), shown)
		}
	}
	for _, k := range event.Kinds() {
		if !kinds[k] && k != event.KindErased && k != event.KindRestored && k != event.KindImported {
			t.Errorf("the scenario has no %s", k)
		}
	}
}

// empty reports whether a view, which omits missing values, may omit v.
func empty(v any) bool {
	return v == nil || v == false || v == 0.0 || reflect.ValueOf(v).Kind() != reflect.String &&
		reflect.ValueOf(v).Kind() != reflect.Float64 &&
		reflect.ValueOf(v).Kind() != reflect.Bool && reflect.ValueOf(v).Len() == 0
}

func TestViewCurrentIsTheJobs(t *testing.T) {
	s := newScenario(t)
	s.lost()
	s.rest()
	s.enqueue(commands.Enqueue{Queue: "mail", Group: "acme"})
	columns, rows := rowsOf(t, s.Store.DSN(), `SELECT * FROM current`)
	var jobs []projection.Job
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if jobs, err = projection.List(t.Context(), tx, projection.Filter{}); err != nil {
			return err
		}
		for i := range jobs {
			if err := projection.LoadBodies(t.Context(), tx, &jobs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || len(jobs) != len(rows) {
		t.Fatalf("%d rows for %d jobs, %v", len(rows), len(jobs), err)
	}
	slices.Reverse(jobs)
	for i, j := range jobs {
		public := jsonRow(t, words.ToFullJSON(j, false))
		if group, ok := public["group"]; ok { // a word of SQL
			public["grp"] = group
			delete(public, "group")
		} else if rows[i]["grp"] == nil {
			delete(rows[i], "grp")
		}
		// Not in the view: what it does not show, and the id once more.
		for _, name := range []string{"lease_token", "payload_base64", "result_base64", "job"} {
			delete(public, name)
		}
		if public["payload"] == nil && len(j.Payload) > 0 {
			delete(public, "payload") // a view shows the bytes as they are
			delete(rows[i], "payload")
		}
		for name, value := range public {
			if !same(t, rows[i][name], value) {
				t.Errorf("job %s (%s): %s is %v, want %v", j.ID, j.State, name, rows[i][name], value)
			}
			delete(rows[i], name)
		}
		if len(rows[i]) > 0 {
			t.Errorf("columns that the JSON does not have: %v", rows[i])
		}
	}
	if got := strings.Join(columns[:5], " "); got != "id seq state queue priority" {
		t.Errorf("columns begin with %s", got)
	}
}

func TestViewAttemptsHasARowForEachClaim(t *testing.T) {
	s := newScenario(t)
	j := s.lost()
	columns, rows := rowsOf(t, s.Store.DSN(), `SELECT * FROM attempts WHERE job = ? ORDER BY attempt`,
		string(j.ID))
	want := "job attempt queue worker boot host pid claimed_at last_heartbeat ended_at outcome exit_code signal"
	if got := strings.Join(columns, " "); got != want {
		t.Errorf("columns\n%s, want\n%s", got, want)
	}
	wanted := []string{
		"1 mail w1 01KDY9FY88BT0000000000W100 build7 4242 " +
			"2026-01-02T03:04:06.500000Z 2026-01-02T03:04:26.500000Z 2026-01-02T03:06:26.500000Z " +
			"reclaimed <nil> <nil>",
		"2 mail w2 01KDY9FY88BT0000000000W200 build7 4242 " +
			"2026-01-02T03:06:31.500000Z <nil> 2026-01-02T03:06:31.750000Z failed 3 <nil>",
		"3 mail w2 01KDY9FY88BT0000000000W200 build7 4242 " +
			"2026-01-02T04:06:31.750000Z <nil> 2026-01-02T04:06:31.750000Z released <nil> <nil>",
		"4 mail w2 01KDY9FY88BT0000000000W200 build7 4242 " +
			"2026-01-02T04:06:31.750000Z <nil> 2026-01-02T04:06:31.750000Z succeeded 0 <nil>",
	}
	var got []string
	for _, r := range rows {
		var cells []string
		for _, c := range columns[1:] {
			cells = append(cells, fmt.Sprint(r[c]))
		}
		got = append(got, strings.Join(cells, " "))
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	_, rows = rowsOf(t, s.Store.DSN(), `SELECT count(*) AS n FROM attempts WHERE ended_at IS NULL`)
	if rows[0]["n"] != int64(0) {
		t.Errorf("%v attempts are under way", rows[0]["n"])
	}
}
