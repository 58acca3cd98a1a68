package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// parsed reads JSON lines as an import does.
func parsed(text []byte) iter.Seq2[event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		for line := range bytes.Lines(text) {
			var l event.Line
			err := json.Unmarshal(line, &l)
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// contents returns everything that a ledger holds: its events with the processes of their workers, and every
// row of the other tables, with dictionary numbers replaced by their words.
func contents(t testing.TB, store *ledger.Store) (rows []string) {
	t.Helper()
	for line, err := range store.Lines(t.Context(), ledger.Filter{}, false) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("[event %s of job %d by %+v", line.AppendJSON(nil), line.N, line.Worker))
	}
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		for _, query := range []string{
			`SELECT 'job', j.n, j.id, j.seq, j.state, j.lane, q.name, j.priority, j.run_at, j.key, j.attempt,
j.failures, j.snoozes, j.max_attempts, j.max_runtime,
    w.worker, w.boot, w.host, w.pid, w.version, j.lease_token, j.claimed_at, j.heartbeat_at,
j.lease_expires_at, j.end_by, j.finished_at, j.error_code, j.more
FROM jobs j JOIN names q ON q.n = j.queue LEFT JOIN workers w ON w.n = j.worker ORDER BY j.n`,
			`SELECT 'queue', q.name, p.paused, p.since, a.name, p.reason
FROM queues p JOIN names q ON q.n = p.queue JOIN names a ON a.n = p.actor ORDER BY q.name`,
			`SELECT 'body', pos, salt, body, CASE WHEN salt IS NULL THEN 1 ELSE 0 END FROM bodies ORDER BY pos`,
		} {
			found, err := tx.Query(t.Context(), query)
			if err != nil {
				return err
			}
			for found.Next() {
				cells, into := make([]any, len(found.Values())), make([]any, len(found.Values()))
				for i := range cells {
					into[i] = &cells[i]
				}
				if err := found.Scan(into...); err != nil {
					return err
				}
				rows = append(rows, fmt.Sprintf("%v", cells))
			}
			if err := found.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func wantClean(t testing.TB, store *ledger.Store) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		for _, f := range v.Findings {
			t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A refused import leaves nothing behind that makes a later import fail.
func TestImportAfterARefusedOne(t *testing.T) {
	source := &commands.Service{Store: openFast(t)}
	_, err := source.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"})
	if err == nil {
		_, err = source.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
			Worker: event.Worker{Name: "w1", Boot: "boot-1", Host: "build7", PID: 7}})
	}
	if err != nil {
		t.Fatal(err)
	}
	text := exported(t, source.Store)
	s := &commands.Service{Store: openFast(t)}
	wrong := bytes.Replace(text, []byte(`"pid":7`), []byte(`"pid":8`), 1)
	wrong = append(wrong, wrong...) // the second event with pos 1 is refused
	_, err = load.Import(t.Context(), s, "cli:test", "x", parsed(wrong), nil)
	if line, ok := errors.AsType[*load.LineError](err); !ok || line.Line != 3 {
		t.Fatalf("got %v, want an error of line 3", err)
	}
	if _, err := load.Import(t.Context(), s, "cli:test", "x", parsed(text), nil); err != nil {
		t.Errorf("after a refused import: %v", err)
	}
	wantClean(t, s.Store)
}

func wantSameRows(t testing.TB, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("row %d\n got %s\nwant %s", i, g, w)
		}
	}
}

// withoutImported drops the event after the first n, which records their import.
func withoutImported(rows []string, n int64) []string { return slices.Delete(rows, int(n), int(n)+1) }

// roundTrip exports, imports, verifies and compares. Then it replays a prefix of the ledger, and compares
// that with the import of the same prefix.
func roundTrip(t *testing.T, store *ledger.Store, cut int64) {
	t.Helper()
	text := exported(t, store)
	whole := openFast(t)
	done, err := load.Import(t.Context(), &commands.Service{Store: whole}, "cli:test", "x.jsonl", parsed(text),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(bytes.Count(text, []byte("\n"))); done.Events != n || done.Missing != 0 {
		t.Errorf("%d lines: %+v", n, done)
	}
	wantClean(t, whole)
	wantSameRows(t, withoutImported(contents(t, whole), done.Events), contents(t, store))

	part := openFast(t)
	until := func(bodies bool) iter.Seq2[event.Line, error] {
		return store.Lines(t.Context(), ledger.Filter{Until: cut}, bodies)
	}
	defer func(before int) { load.Step = before }(load.Step)
	load.Step = 7
	replayed, err := load.Replay(t.Context(), &commands.Service{Store: part, Staging: true}, "cli:test", "x.db",
		until(true), nil)
	if err != nil || len(replayed.Findings) > 0 {
		t.Fatal(err, replayed.Findings)
	}
	wantClean(t, part)
	var beginning []byte
	for line := range bytes.Lines(text) {
		if beginning = append(beginning, line...); int64(bytes.Count(beginning, []byte("\n"))) == cut {
			break
		}
	}
	imported := openFast(t)
	if _, err := load.Import(t.Context(), &commands.Service{Store: imported, Staging: true}, "cli:test",
		"x.jsonl",
		parsed(beginning), nil); err != nil {
		t.Fatal(err)
	}
	wantClean(t, imported)
	if replayed.Missing == 0 {
		wantSameRows(t, withoutImported(contents(t, imported), cut), contents(t, part))
	}

	bare := openFast(t) // an export without bodies can be imported and read
	done, err = load.Import(t.Context(), &commands.Service{Store: bare}, "cli:test", "x.jsonl", until(false),
		nil)
	if err != nil || done.Events != cut {
		t.Fatal(done, err)
	}
	wantClean(t, bare)
}

func TestImportRoundTripOfBadNight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(badNightFile)
	if err != nil {
		t.Fatal(err)
	}
	store := openFast(t)
	if _, err := load.Import(t.Context(), &commands.Service{Store: store}, "cli:test", "bad-night.jsonl",
		parsed(text), nil); err != nil {
		t.Fatal(err)
	}
	wantClean(t, store)
	roundTrip(t, store, 3000)
}

// TestImportRoundTripOfRandomHistories runs the round trip on random histories that use every feature of a
// ledger.
func TestImportRoundTripOfRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range ledgertest.Size(3, 3, 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := dice(seed + 1)
			store := anyHistory(t, &d, 60+d.roll(150))
			wantClean(t, store)
			tail := int64(0)
			for line, err := range store.Lines(t.Context(), ledger.Filter{}, false) {
				if err != nil {
					t.Fatal(err)
				}
				tail = line.Pos
			}
			roundTrip(t, store, 1+int64(d.roll(int(tail))))
		})
	}
}

// anyHistory applies random commands, of which many are refused.
func anyHistory(t *testing.T, d *dice, steps int) *ledger.Store {
	t.Helper()
	store := openFast(t)
	now := ledgertest.Epoch
	store.Now = func() time.Time { return now }
	s := &commands.Service{Store: store}
	var jobs []event.JobID
	var held []projection.Job
	queues := []string{"mail", "render", "a.b-c_d"}
	ok := func(err error) {
		t.Helper()
		if err != nil && !errors.Is(err, commands.ErrConflict) && !errors.Is(err, commands.ErrLeaseLost) &&
			!errors.Is(err, commands.ErrCancelled) {
			t.Fatal(err)
		}
	}
	bytesOf := func() []byte {
		switch d.roll(5) {
		case 0:
			return nil
		case 1:
			return []byte("\u2028<&>\x00\x1b\"\\\ufffd😀\r\n")
		case 2:
			return []byte{0xff, 0xfe, 0, byte(d.roll(256))}
		case 3:
			return bytes.Repeat([]byte{byte('a' + d.roll(26))}, d.roll(3000))
		}
		return fmt.Appendf(nil, `{"n":%d}`, d.roll(9))
	}
	for i := range steps {
		now = now.Add(time.Duration(d.roll(20_000_000)) * time.Microsecond)
		w := event.Worker{Name: fmt.Sprint("w", d.roll(3)), Host: []string{"", "ü-host"}[d.roll(2)], PID: d.roll(2)}
		w.Boot = fmt.Sprint("boot", d.roll(3), w.Host, w.PID)
		switch d.roll(16) {
		case 0, 1, 2, 3:
			e := commands.Enqueue{Queue: queues[d.roll(3)], Payload: bytesOf(), Priority: d.roll(3) - 1,
				MaxAttempts: d.roll(4),
				MaxRuntime:  time.Duration(d.roll(3)) * 1500 * time.Millisecond}
			if d.roll(2) == 0 {
				e.Key, e.Tags = fmt.Sprint("ключ\t", d.roll(20)), map[string]string{"customer": "17", "z": "",
					"ä": "=1+1"}
			}
			if d.roll(4) == 0 {
				e.Version, e.Requires, e.RunAt = "v1", []string{"gpu", "eu"},
					now.Add(time.Duration(d.roll(60))*time.Second)
			}
			answers, err := s.Enqueue(t.Context(), "cli:test|`x`", e)
			ok(err)
			if err == nil {
				jobs = append(jobs, answers[0].ID)
			}
		case 4, 5, 6, 7:
			claimed, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: queues, Worker: w, Version: "v1",
				Capabilities: []string{"gpu", "eu"}, Lease: 10 * time.Second, Limit: 1 + d.roll(3)})
			ok(err)
			held = append(held, claimed...)
		case 8, 9, 10, 11:
			if len(held) == 0 {
				continue
			}
			j := held[d.roll(len(held))]
			share, code := float64(d.roll(1000))/999, d.roll(3)
			c := []commands.Command{
				commands.Heartbeat{Token: j.Token, Lease: 15 * time.Second, Progress: &share, Note: "Δ"},
				commands.Succeed{Token: j.Token, Result: bytesOf(), ExitCode: &code},
				commands.Fail{Token: j.Token, Code: "oops", Detail: "line\n\"two\"", ExitCode: &code},
				commands.Fail{Token: j.Token, Signal: "SIGKILL"},
				commands.Release{Token: j.Token, Snooze: code == 0, Reason: "later", Delay: time.Second},
				commands.Heartbeat{Token: "unknown", Lease: time.Minute},
			}[d.roll(6)]
			_, err := s.Apply(t.Context(), "worker:"+j.Worker.Name, j.ID, c)
			ok(err)
		case 12:
			if len(jobs) == 0 {
				continue
			}
			priority := d.roll(5)
			c := []commands.Command{commands.Cancel{Reason: "why"}, commands.Retry{},
				commands.Erase{Reason: "asked for"},
				commands.Reschedule{Priority: &priority}, commands.Retry{Reason: "again"}}[d.roll(5)]
			_, err := s.Apply(t.Context(), "cli:ada", jobs[d.roll(len(jobs))], c)
			ok(err)
		case 13:
			none := time.Duration(0)
			_, err := (&commands.Sweeper{Service: s, Actor: "sweeper:x", Grace: &none}).Sweep(t.Context())
			ok(err)
		case 14:
			if i%2 == 0 {
				_, err := s.Pause(t.Context(), "cli:ada", queues[d.roll(3)], "reason")
				ok(err)
			} else {
				_, err := s.Resume(t.Context(), "cli:ada", queues[d.roll(3)], "")
				ok(err)
			}
		case 15:
			ok(s.WorkerStarted(t.Context(), w, queues, []string{"gpu"}))
			ok(s.WorkerStopped(t.Context(), w))
			if d.roll(10) == 0 {
				_, err := s.Rebuild(t.Context(), "cli:ada")
				ok(err)
			}
		}
	}
	return store
}

func TestImportNeedsAnEmptyLedger(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	text := exported(t, q.Store)
	if _, err := load.Import(t.Context(), q.Service, "cli:test", "x", parsed(text), nil); !errors.Is(err,
		load.ErrNotEmpty) || !errors.Is(err, commands.ErrConflict) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	empty := ledgertest.Open(t)
	_, err := load.Import(ctx, &commands.Service{Store: empty}, "cli:test", "x",
		func(yield func(event.Line, error) bool) {
			for l, err := range parsed(text) {
				cancel()
				if !yield(l, err) {
					return
				}
			}
		}, nil)
	if !errors.Is(err, context.Canceled) || len(exported(t, empty)) > 0 {
		t.Errorf("interrupted: %v", err)
	}
}

// TestImportPausesQueuesWithoutPayloads: a ledger without payloads is for reading.
func TestImportPausesQueuesWithoutPayloads(t *testing.T) {
	q := newQueue(t)
	gone := q.enqueue(commands.Enqueue{Queue: "a", Payload: []byte("x")})
	q.enqueue(commands.Enqueue{Queue: "b", Payload: []byte("y")})
	j := q.claim("w", func(r *commands.ClaimRequest) { r.Queues = []string{"a"} })[0]
	q.do(j, commands.Succeed{Token: j.Token, Result: []byte("r")})
	q.do(gone, commands.Erase{Reason: "asked for"})

	for _, bodies := range []bool{true, false} {
		lines := q.Store.Lines(t.Context(), ledger.Filter{Until: 4}, bodies) // up to just before the erasure
		copied := openFast(t)
		s := &commands.Service{Store: copied}
		done, err := load.Replay(t.Context(), s, "cli:test", "x.db", lines, nil)
		want := load.Loaded{Events: 4, Jobs: 2, Missing: 2, Paused: []string{"a"}}
		if !bodies {
			want.Missing, want.Paused = 3, []string{"a", "b"}
		}
		if err != nil || fmt.Sprint(done) != fmt.Sprint(want) {
			t.Errorf("bodies %t: got %+v, %v; want %+v", bodies, done, err, want)
		}
		wantClean(t, copied)
		claimed, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"a", "b"}, Worker: worker("w")})
		if err != nil || len(claimed) != map[bool]int{true: 1, false: 0}[bodies] {
			t.Errorf("bodies %t: claimed %+v, %v", bodies, claimed, err)
		}
		// It is a normal ledger: it can be exported, imported and erased from again.
		again := openFast(t)
		done, err = load.Import(t.Context(), &commands.Service{Store: again}, "cli:test", "x.jsonl",
			parsed(exported(t, copied)), nil)
		if err != nil || done.Missing != 0 {
			t.Errorf("bodies %t, again: %+v, %v", bodies, done, err)
		}
		if _, err := (&commands.Service{Store: again}).Apply(t.Context(), "cli:test", gone.ID,
			commands.Erase{}); err != nil {
			t.Error(err)
		}
		wantClean(t, again)
	}
}

func TestErase(t *testing.T) {
	store := openFast(t) // closed early, so that the file can be read
	q := &queue{&commandstest.Scenario{Service: &commands.Service{Store: store}, T: t, Now: ledgertest.Epoch}}
	secret := []byte("a secret of some length, to be found in a file")
	j := q.enqueue(commands.Enqueue{Key: "k", Payload: secret})
	if _, err := q.Apply(t.Context(), "cli:ada", j.ID, commands.Erase{}); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("while queued: %v", err)
	}
	c := q.claimOne("w")
	q.do(c, commands.Succeed{Token: c.Token, Result: append([]byte("first "), secret...)})
	q.do(j, commands.Retry{})
	c = q.claimOne("w")
	q.do(c, commands.Succeed{Token: c.Token, Result: append([]byte("second "), secret...)})
	after, err := q.Apply(t.Context(), "cli:ada", j.ID, commands.Erase{Reason: "asked for"})
	if err != nil || !after.Erased || after.State != event.SucceededState {
		t.Fatal(after, err)
	}
	if _, err := q.Apply(t.Context(), "cli:ada", j.ID, commands.Erase{Reason: "again"}); err != nil {
		t.Errorf("erased twice: %v", err)
	}
	for what, c := range map[string]commands.Command{"retry": commands.Retry{}, "cancel": commands.Cancel{}} {
		if _, err := q.Apply(t.Context(), "cli:ada", j.ID, c); !errors.Is(err, commands.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := q.Enqueue(t.Context(), "cli:ada", commands.Enqueue{Queue: "mail", Key: "k",
		Payload: secret}); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("its key: %v", err)
	}
	all, _ := q.events(j)
	b, ok := all[len(all)-1].Body.(*event.Erased)
	if !ok || b.Bodies != 3 || b.Bytes != int64(3*len(secret)+len("first second ")) || b.Reason != "asked for" {
		t.Errorf("got %+v", b)
	}
	if whole, err := q.Store.Checkpoint(t.Context()); !whole || err != nil {
		t.Error(whole, err)
	}
	for _, row := range contents(t, q.Store) {
		if strings.HasPrefix(row, "[body") {
			t.Errorf("still there: %s", row)
		}
	}
	q.Verify()
	if ledgertest.OnPostgres(t) {
		return
	}
	path := store.Path()
	if err := q.Store.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, secret) || bytes.Contains(text, secret[:20]) {
		t.Errorf("the bytes are still in the file (%v)", err)
	}
}

// TestImportOldHistories: every export that was ever written can be imported.
func TestImportOldHistories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(badNightFile), "v*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		store := openFast(t)
		if _, err := load.Import(t.Context(), &commands.Service{Store: store}, "cli:test", file, parsed(text),
			nil); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		wantClean(t, store)
	}
}
