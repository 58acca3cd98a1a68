package audit_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
	"jobledger/projection/rebuild"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// tableRows are the rows of a table: int64, string, []byte or nil each, ordered by the first column.
type tableRows [][]any

// recording is a whole history as stored in the file.
type recording struct {
	events, bodies tableRows
	sequence       int64 // the highest pos ever
}

// The columns of a row of events that the mutations use, by index.
const (
	colPos, colJob, colSeq, colKind, colAt, colActor, colWorker, colULID, colAttempt = 0, 1, 2, 3, 4, 5, 6, 7, 8
	colFrom, colTo, colDigest, colData                                               = 9, 10, 11, 12
)

// set replaces a value; the row may be shared with the recording that s was copied from.
func (t tableRows) set(i, column int, v any) {
	t[i] = slices.Clone(t[i])
	t[i][column] = v
}

func (s recording) clone() recording {
	return recording{slices.Clone(s.events), slices.Clone(s.bodies), s.sequence}
}

// mutation is one change that a user with a SQLite shell could make to a history.
type mutation struct {
	i     int    // index of the event
	field string // a column, data.field, or "event"
	how   string
	do    func(*recording)
}

// forger writes recordings into a ledger's file, as a user would after dropping the guards of events.
type forger struct {
	t           testing.TB
	store       *ledger.Store
	db          *sql.DB
	truth       recording
	is          recording // content of the file
	drop, guard []string  // statements that drop and restore the guards
	refused     error     // why the last one was refused
}

func newForger(t testing.TB, events []event.Event) *forger {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store := ledgertest.OpenAt(t, "sqlite:"+path+"?sync=normal")
	historytest.Record(t, store, events)
	wantClean(t, store)
	db, err := sql.Open("sqlite", fileURL(path)+"&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	w := &forger{t: t, store: store, db: db}
	for _, row := range w.read(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'
AND tbl_name IN ('events', 'bodies')`) {
		w.drop, w.guard = append(w.drop, `DROP TRIGGER `+row[0].(string)), append(w.guard, row[1].(string))
	}
	w.must(w.drop...)
	w.truth = recording{w.read(`SELECT * FROM events ORDER BY pos`), w.read(`SELECT * FROM bodies ORDER BY pos`),
		int64(len(events))}
	w.is = w.truth
	w.must(`CREATE TEMP TABLE jobs_kept AS SELECT * FROM jobs`,
		`CREATE TEMP TABLE queues_kept AS SELECT * FROM queues`)
	return w
}

func (w *forger) must(statements ...string) {
	w.t.Helper()
	for _, s := range statements {
		if _, err := w.db.ExecContext(context.Background(), s); err != nil {
			w.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (w *forger) read(query string) (t tableRows) {
	w.t.Helper()
	rows, err := w.db.QueryContext(context.Background(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		w.t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			w.t.Fatal(err)
		}
		for i, v := range values {
			if b, ok := v.([]byte); ok && b == nil {
				values[i] = []byte{} // the driver returns nil for an empty value
			}
		}
		t = append(t, values)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return t
}

// write makes s the content of the file; refused is true if the database does not accept it.
func (w *forger) write(s recording) (refused bool) {
	w.t.Helper()
	tx, err := w.db.BeginTx(context.Background(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.replace(tx, s); err != nil {
		var e *sqlite.Error
		if rollbackErr := tx.Rollback(); !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_CONSTRAINT ||
			rollbackErr != nil {
			w.t.Fatal(err, rollbackErr)
		}
		w.refused = err
		return true
	}
	if err := tx.Commit(); err != nil {
		w.t.Fatal(err)
	}
	w.is = s
	return false
}

func (w *forger) replace(tx *sql.Tx, s recording) error {
	for _, change := range []struct {
		name   string
		is, to tableRows
	}{{"events", w.is.events, s.events}, {"bodies", w.is.bodies, s.bodies}} {
		gone, come := differing(change.is, change.to), differing(change.to, change.is)
		for _, row := range gone {
			if _, err := tx.ExecContext(context.Background(), `DELETE FROM `+change.name+` WHERE pos = ?`,
				row[0]); err != nil {
				return err
			}
		}
		for _, row := range come {
			insert := `INSERT INTO ` + change.name + ` VALUES (?` + strings.Repeat(", ?", len(row)-1) + `)`
			if _, err := tx.ExecContext(context.Background(), insert, row...); err != nil {
				return err
			}
		}
	}
	_, err := tx.ExecContext(context.Background(), `UPDATE sqlite_sequence SET seq = ? WHERE name = 'events'`,
		s.sequence)
	return err
}

// differing returns the rows of a that are not in b; recordings share their common rows.
func differing(a, b tableRows) (rows tableRows) {
	shared := make(map[*any]bool, len(b))
	for _, row := range b {
		shared[&row[0]] = true
	}
	for _, row := range a {
		if !shared[&row[0]] {
			rows = append(rows, row)
		}
	}
	return rows
}

// outcome is the circumstances in which a mutation is found.
type outcome string

const (
	found      outcome = "found"     // always
	asItWas    outcome = "as it was" // only while the tables are the fold of the true history
	neverFound outcome = "never"     // not even then
)

// try writes the mutated recording, checks whether verify finds the mutation, and restores the file. With
// whole it does so once more with the guards restored, as a careful forger would.
func (w *forger) try(m mutation, whole bool) (where outcome, codes []string) {
	w.t.Helper()
	mutated := w.truth.clone()
	m.do(&mutated)
	if w.write(mutated) {
		return found, []string{"the database"}
	}
	codes = w.verify()
	if whole {
		w.must(w.guard...)
		if clean := len(verify(w.t, w.store).Findings) == 0; clean != (len(codes) == 0) {
			w.t.Errorf("%s of event %d: found %v, but by the whole check: %t", m, m.i+1, codes, !clean)
		}
		w.must(w.drop...)
	}
	where = found
	switch {
	case len(codes) == 0:
		where = neverFound // and a rebuild would change nothing
	case !slices.ContainsFunc(codes, judgesEvents) && w.rebuild():
		if len(w.verify()) == 0 {
			where = asItWas
		}
		w.must(`DELETE FROM jobs`, `INSERT INTO jobs SELECT * FROM jobs_kept`, `DELETE FROM queues`,
			`INSERT INTO queues SELECT * FROM queues_kept`)
	}
	return where, codes
}

// judgesEvents reports whether a check examines the events alone, so that a rebuild cannot hide its finding.
func judgesEvents(code string) bool {
	return !slices.Contains([]string{audit.FindDiffers, audit.FindMissing, audit.FindExtra, audit.FindQueue},
		code)
}

func (w *forger) verify() (codes []string) {
	w.t.Helper()
	err := w.store.Read(context.Background(), func(tx *ledger.Tx) error {
		v, err := audit.VerifyHistory(context.Background(), tx)
		for _, f := range v.Findings {
			codes = append(codes, f.Code)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// rebuild derives the tables from the mutated events.
func (w *forger) rebuild() bool {
	w.t.Helper()
	err := w.store.Write(context.Background(), func(tx *ledger.Tx) error {
		_, err := rebuild.Rows(context.Background(), tx)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return true
}

// compact returns a history with each kind of event and each of its fields, in as many situations as a few
// events can show.
func compact(t testing.TB) []event.Event {
	t.Helper()
	events := historytest.Read(t, "v1.jsonl")
	at := events[len(events)-1].At.Truncate(time.Second).Add(time.Minute)
	w3 := event.Worker{Name: "w3", Boot: "01KDXYZAF8B00T0000000000CC", Host: "host-CC", PID: 12}
	add := func(e event.Event) {
		e.Pos = int64(len(events) + 1)
		if e.Kind() == event.KindEnqueued {
			e.N = e.Pos
		}
		events = append(events, e)
	}
	const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	output := event.Output{StdoutSHA256: digest, StdoutBytes: 3, StderrSHA256: digest, StderrBytes: 4}
	zero := 0
	ids := [2]event.JobID{"01KDXYZAF80000000000000011", "01KDXYZAF80000000000000012"}
	tokens := [2]string{"01KDXYZAF8T0KEN0000000000H", "01KDXYZAF8T0KEN0000000000J"}
	first := int64(len(events) + 1)
	of := func(i int, e event.Event) event.Event { // the claim of job i
		e.Job, e.N, e.Attempt, e.Worker, e.Token, e.Actor = ids[i], first+int64(i), 1, w3, tokens[i], "worker:w3"
		return e
	}
	for _, id := range ids { // in one transaction, and so at one time
		body := "payload of " + string(id[23:])
		add(event.Event{Job: id, Seq: 1, At: at, Actor: "cli:ann@host-a", To: event.Queued,
			Body: &event.Enqueued{Queue: "bulk", RunAt: at, MaxAttempts: 3,
				PayloadSHA256: ledger.Digest([]byte("salt of "+string(id[23:])), []byte(body)),
				PayloadBytes:  int64(len(body))}})
	}
	add(event.Event{At: at.Add(1e6), Actor: "worker:w3", Worker: w3,
		Body: &event.WorkerStarted{Queues: []string{"bulk"}}})
	for i := range ids {
		add(of(i, event.Event{Seq: 2, At: at.Add(2e6), From: event.Queued, To: event.ClaimedState,
			Body: &event.Claimed{LeaseUntil: at.Add(time.Minute)}}))
	}
	add(of(0, event.Event{Seq: 3, At: at.Add(3e6), From: event.ClaimedState, To: event.SucceededState,
		Body: &event.Succeeded{ResultSHA256: ledger.Digest([]byte("salt of 011"), nil), ExitCode: &zero,
			Output: output}}))
	// The clock was set back by more than the lease.
	add(of(1, event.Event{Seq: 3, At: at.Add(3e6), From: event.ClaimedState, To: event.Running,
		Body: &event.Heartbeat{LeaseUntil: at.Add(-time.Hour)}}))
	add(of(0, event.Event{At: at.Add(4e6), Body: &event.Refused{Command: "fail", Why: "the claim has ended"}}))
	add(of(0, event.Event{At: at.Add(5e6), Body: &event.Refused{Command: "heartbeat",
		Why: "the claim has ended"}}))
	add(of(1, event.Event{Seq: 4, At: at.Add(6e6), From: event.Running, To: event.Queued,
		Body: &event.Failed{ErrorCode: "exit", ExitCode: &zero, RetryAt: at.Add(time.Hour), Output: output}}))
	add(event.Event{At: at.Add(7e6), Actor: "cli:ann@host-a", Body: &event.Restored{From: "backup.db"}})
	add(event.Event{At: at.Add(8e6), Actor: "worker:w3", Worker: w3, Body: &event.WorkerStopped{}})
	return events
}

// TestVerifyFindsEveryMutation applies, one at a time, the changes that a user with a SQLite shell could make
// to a history, and checks whether Verify finds them: with the unchanged tables, and, if only the tables
// revealed the change, with tables derived from the mutated events. Undetectable mutations are listed in
// blindSpots with the reason; listing a detectable one is an error too.
func TestVerifyFindsEveryMutation(t *testing.T) {
	events := compact(t)
	listed := listBlindSpots(t, events)
	const shards = 2
	every := ledgertest.Size(31, 23, 3) // odd, so that each shard gets its share
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			w := newForger(t, events)
			for k, m := range mutations(t, events, w.truth) {
				if k%shards != shard || k%every != 0 {
					continue
				}
				where, codes := w.try(m, k%97 == 0)
				want := listed[m.key()]
				if want == "" {
					want = found
				}
				switch {
				case where == want:
				case where == found:
					t.Errorf("%s of %s %d is found now, by %v: take it out of "+
						"blindSpots", m, events[m.i].Kind(), m.i+1, codes)
				default:
					t.Errorf("%s of %s %d: found %q by %v, want %q", m, events[m.i].Kind(), m.i+1, where, codes, want)
				}
			}
			if w.write(w.truth) {
				t.Fatal(w.refused)
			}
			w.must(w.guard...)
			wantClean(t, w.store)
		})
	}
}

func (m mutation) String() string { return m.field + ": " + m.how }

type mutationKey struct {
	i          int
	field, how string
}

func (m mutation) key() mutationKey { return mutationKey{m.i, m.field, m.how} }

// listBlindSpots returns the outcome of each mutation in blindSpots. Each must be one that is tried.
func listBlindSpots(t testing.TB, events []event.Event) map[mutationKey]outcome {
	t.Helper()
	w := newForger(t, events)
	tried := make(map[mutationKey]bool)
	for _, m := range mutations(t, events, w.truth) {
		if tried[m.key()] {
			t.Errorf("%s of event %d is listed twice", m, m.i+1)
		}
		tried[m.key()] = true
	}
	listed := make(map[mutationKey]outcome)
	for _, u := range blindSpots {
		for how := range strings.SplitSeq(u.how, " | ") {
			for of := range strings.FieldsSeq(u.events) {
				kind, list, _ := strings.Cut(of, ":")
				for number := range strings.SplitSeq(list, ",") {
					pos, err := strconv.Atoi(number)
					if err != nil || pos < 1 || pos > len(events) || events[pos-1].Kind().String() != kind {
						t.Fatalf("blindSpots: %s: there is no %s %s", u.field, kind, number)
					}
					key := mutationKey{pos - 1, u.field, how}
					if !tried[key] || listed[key] != "" || u.why == "" {
						t.Errorf("blindSpots: %s: %s of event %d: tried %t, listed before as %q, because "+
							"%q", u.field, how, pos, tried[key], listed[key], u.why)
					}
					listed[key] = u.where
				}
			}
		}
	}
	return listed
}
