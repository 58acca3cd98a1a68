package audit_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
)

// rootOf returns the root over the first size events of s.
func rootOf(s *ledger.Store, size int64) (root proof.Hash, err error) {
	err = s.Read(context.Background(), func(tx *ledger.Tx) error {
		t, err := tree.New(context.Background(), tx, nil)
		if err == nil {
			root, err = t.Root(context.Background(), size)
		}
		return err
	})
	return root, err
}

// addSeal adds a seal of the first size events; with a key, a checkpoint that is signed with it.
func addSeal(t testing.TB, s *ledger.Store, size int64, origin, key string) tree.Seal {
	t.Helper()
	root, err := rootOf(s, size)
	if err != nil {
		t.Fatal(err)
	}
	seal := tree.Seal{Size: size, Root: root}
	if origin != "" {
		var keys []string
		if key != "" {
			keys = []string{key}
		}
		note, err := proof.Checkpoint{Origin: origin, Size: size, Root: root}.Sign(keys...)
		if err != nil {
			t.Fatal(err)
		}
		seal.Note = string(note)
	}
	if err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tree.AppendSeals(t.Context(), tx, seal)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return seal
}

// sealed records events and, behind them, an event sealing and pauses of a queue, up to some number of
// events.
func sealed(t testing.TB, s *ledger.Store, events []event.Event, origin, public string, size int64) {
	t.Helper()
	historytest.Record(t, s, events)
	at := events[len(events)-1].At
	err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		q := projection.Queue{}
		for pos := tx.Next(); pos <= size; pos++ {
			e := event.Event{Pos: pos, At: at, Actor: "cli:ann@host-a"}
			switch {
			case pos == int64(len(events))+1:
				e.Body = &event.Sealing{Origin: origin, Key: public, Reason: "audit"}
			case q.Paused:
				e.Body = &event.QueueResumed{Queue: "filler"}
			default:
				e.Body = &event.QueuePaused{Queue: "filler", Reason: "é"}
			}
			if e.Kind() != event.KindSealing {
				var err error
				if q, err = projection.EvolveQueue(q, e); err != nil {
					return err
				}
				if err := projection.PutQueue(t.Context(), tx, q); err != nil {
					return err
				}
			}
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

// TestVerifyComputesTheLeavesOfTheTree: from any event on, in steps of any size, for every kind of event.
func TestVerifyComputesTheLeavesOfTheTree(t *testing.T) {
	t.Parallel()
	s := ledgertest.Open(t)
	history, err := os.ReadFile(filepath.Join(historytest.Dir(t), "bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	tail := int64(0)
	err = s.Write(t.Context(), func(tx *ledger.Tx) error {
		l := audit.NewLoader(tx)
		for text := range bytes.Lines(history) {
			var line event.Line
			if err := line.UnmarshalJSON(text); err != nil {
				return err
			}
			if err := l.Add(t.Context(), line); err != nil {
				return err
			}
		}
		tail = l.Events()
		return l.End(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Extend(t.Context(), s, 0, nil); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1, 100, 256, 257, tail / 2, tail / 2, tail - 1, tail} {
		addSeal(t, s, size, "", "")
	}
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		if rounds++; rounds > ledgertest.Size(5, 5, 30) {
			return
		}
		since := rapid.Int64Range(0, tail).Draw(rt, "since")
		step := rapid.Int64Range(50, 2*tail).Draw(rt, "step")
		v, err := audit.VerifyInSteps(context.Background(), s, since, step, func() {})
		if err != nil || len(v.Findings) > 0 {
			rt.Fatalf("%v, %v", err, v.Findings)
		}
	})
}

func open(t testing.TB) (s *ledger.Store, db *sql.DB) {
	t.Helper()
	path := t.TempDir() + "/jobs.db"
	s = ledgertest.OpenAt(t, "sqlite:"+path+"?sync=normal")
	db, err := sql.Open("sqlite", fileURL(path)+"&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return s, db
}

func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// unguard drops the triggers of the tables whose rows never change.
func unguard(t testing.TB, db *sql.DB) {
	t.Helper()
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	var drop []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		drop = append(drop, "DROP TRIGGER "+name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	exec(t, db, drop...)
}

// TestVerifyNamesWhatDiffersFromItsSeal: an edited event that is in order otherwise, blocks and seals.
func TestVerifyNamesWhatDiffersFromItsSeal(t *testing.T) {
	t.Parallel()
	private, public, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	const size = 3*proof.BlockSize + 20
	for _, c := range []struct {
		name, change string
		want         string // the codes, and a part of the first finding's detail
	}{
		{"nothing", `SELECT 1`, ""},
		{"a reason in a block", `UPDATE events SET data = '{"queue":"filler","reason":"x"}' WHERE pos IN
			(SELECT pos FROM events WHERE kind = 13 AND pos BETWEEN 300 AND 310 LIMIT 1)`,
			"V25 the events 257 to 512 are not those that block 1 was computed from"},
		{"a reason behind the blocks", `UPDATE events SET data = '{"queue":"filler","reason":"x"}' WHERE pos IN
			(SELECT pos FROM events WHERE kind = 13 AND pos > 3 * 256 LIMIT 1)`,
			"V26 seal 3 of 788 events: its root is"},
		{"a block", `UPDATE blocks SET hash = randomblob(32) WHERE n = 2`, "V25 V26 block 2 was"},
		{"the last block", `DELETE FROM blocks WHERE n = 2`, ""}, // the next sweep adds it
		{"the first block", `DELETE FROM blocks WHERE n = 0`, "V25 V26 the events 1 to 256"},
		{"a block of events to come", `INSERT INTO blocks VALUES (3, randomblob(32))`,
			"V25 1024 events were sealed in blocks, and there are 788"},
		{"a block beyond all positions", `INSERT INTO blocks VALUES (1 << 55, randomblob(32))`,
			"V25 9223372036854775552 events were sealed in blocks, and there are 788"},
		{"the last block that has a number", `INSERT INTO blocks VALUES (9223372036854775807, randomblob(32))`,
			"V25 9223372036854775552 events were sealed in blocks, and there are 788"},
		{"a block before the first", `INSERT INTO blocks VALUES (-1, randomblob(32))`,
			"V25 there is a block -1, and the first one is 0"},
		{"a seal of events to come", `INSERT INTO seals VALUES (4, 789, 1, randomblob(32), NULL, NULL)`,
			"V26 seal 4 is of 789 events, and there are 788"},
		{"a seal's root", `UPDATE seals SET root = randomblob(32) WHERE n = 1`,
			"V26 seal 1 of 300 events: its root"},
		{"a seal's size", `UPDATE seals SET size = 301 WHERE n = 1`, "V26 seal 1 of 301 events: its root"},
		{"a seal of less than nothing", `UPDATE seals SET size = -5 WHERE n = 1`, "V26 seal 1 of -5 events"},
		{"a checkpoint", `UPDATE seals SET note = replace(note, '788', '787') WHERE n = 3`, "V26 of another size"},
		{"no checkpoint", `UPDATE seals SET note = 'x' WHERE n = 3`, "V26 a checkpoint has three lines"},
		{"a name", `UPDATE seals SET note = replace(note, 'jobledger/a', 'jobledger/b') WHERE n = 2`,
			"V26 a name that no sealing had given"},
		{"another key", "", "V26 not signed with a key that a sealing had named"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, db := open(t)
			sealed(t, s, historytest.Read(t, "v2.jsonl"), "jobledger/a", public, size)
			if _, err := tree.Extend(t.Context(), s, 0, nil); err != nil {
				t.Fatal(err)
			}
			addSeal(t, s, 300, "", "")
			addSeal(t, s, 600, "jobledger/a", "")
			key := private
			if c.change == "" {
				key = other
			}
			addSeal(t, s, size, "jobledger/a", key)
			unguard(t, db)
			exec(t, db, c.change)
			var v audit.Verified
			err := s.Read(t.Context(), func(tx *ledger.Tx) (err error) {
				v, err = audit.VerifyHistory(t.Context(), tx)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range v.Findings {
				got = append(got, f.Code)
			}
			slices.Sort(got)
			got = slices.Compact(got)
			for _, f := range v.Findings {
				got = append(got, f.Detail)
			}
			text, fields := strings.Join(got, " "), strings.Fields(c.want)
			codes := slices.DeleteFunc(slices.Clone(fields),
				func(w string) bool { return !strings.HasPrefix(w, "V2") })
			detail := strings.Join(fields[len(codes):], " ")
			if !strings.HasPrefix(text+" ", strings.Join(codes, " ")) || !strings.Contains(text, detail) ||
				(c.want == "") != (text == "") {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// TestVerifySinceComparesSealsWithoutBlocks: the hashes of blocks before that event may have been removed.
func TestVerifySinceComparesSealsWithoutBlocks(t *testing.T) {
	s, db := open(t)
	const size = 2*proof.BlockSize + 20
	sealed(t, s, historytest.Read(t, "v2.jsonl"), "jobledger/a", "", size)
	if _, err := tree.Extend(t.Context(), s, 0, nil); err != nil {
		t.Fatal(err)
	}
	addSeal(t, s, size, "", "")
	unguard(t, db)
	exec(t, db, `DELETE FROM blocks`)
	for _, want := range []string{"", "V26"} {
		for _, since := range []int64{0, 100, proof.BlockSize + 5, 2 * proof.BlockSize} {
			var got []string
			err := s.Read(t.Context(), func(tx *ledger.Tx) error {
				v, err := audit.VerifySince(t.Context(), tx, since, nil)
				for _, f := range v.Findings {
					if f.Code == "V25" || f.Code == "V26" {
						got = append(got, f.Code)
					}
				}
				return err
			})
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("since %d: got %v, %v, want %s", since, got, err, want)
			}
		}
		exec(t, db, `UPDATE events SET data = '{"queue":"filler","reason":"x"}' WHERE pos IN
			(SELECT max(pos) FROM events WHERE kind = 13)`)
	}
	exec(t, db, `INSERT INTO blocks VALUES (1, zeroblob(32))`) // without block 0
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.VerifySince(t.Context(), tx, 2*proof.BlockSize, nil)
		if !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Code == "V25" }) {
			t.Errorf("a missing block before it: got %+v", v.Findings)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// cell is a value of a table.
type cell struct {
	table, key, column string
	n                  int64 // of its row
	value              any
}

// cellsOf returns all values of a table but those of the columns in without.
func cellsOf(t testing.TB, db *sql.DB, table, key string, without ...string) (list []cell) {
	t.Helper()
	rows, err := db.Query(`SELECT * FROM ` + table + ` ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, column := range columns {
			if !slices.Contains(without, column) && values[i] != nil {
				list = append(list, cell{table, key, column, values[0].(int64), values[i]})
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// size returns how many bytes of the value may be changed: of an integer those that the file stores.
func (c cell) size() int {
	switch v := c.value.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	case int64:
		n := 1
		for ; n < 8 && signed(v, n) != v; n++ {
		}
		return n
	}
	return 0
}

// signed returns the number in the lowest n bytes of v, of which the highest bit is the sign.
func signed(v int64, n int) int64 { return v << (64 - 8*n) >> (64 - 8*n) }

// changed returns the value with one byte changed.
func (c cell) changed(i int, by byte) any {
	switch v := c.value.(type) {
	case string:
		b := []byte(v)
		b[i] ^= by
		return string(b)
	case []byte:
		b := slices.Clone(v)
		b[i] ^= by
		return b
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(c.value.(int64)))
	b[i] ^= by
	return signed(int64(binary.LittleEndian.Uint64(b)), c.size())
}

// TestCheckpointFindsEveryChangedByte changes single bytes of stored events, blocks and seals, as a user
// could who has dropped the guards. Verify, or the root of the tree at the size of a checkpoint from before,
// must differ. The time of a seal is not sealed.
func TestCheckpointFindsEveryChangedByte(t *testing.T) {
	t.Parallel()
	private, public, err := proof.GenerateKey("jobledger/a")
	if err != nil {
		t.Fatal(err)
	}
	s, db := open(t)
	const size = proof.BlockSize + 9
	sealed(t, s, compact(t), "jobledger/a", public, size)
	if _, err := tree.Extend(t.Context(), s, 0, nil); err != nil {
		t.Fatal(err)
	}
	addSeal(t, s, size-3, "", "")
	checkpoint := addSeal(t, s, size, "jobledger/a", private)
	unguard(t, db)
	found := func() bool {
		var v audit.Verified
		err := s.Read(context.Background(), func(tx *ledger.Tx) (err error) {
			v, err = audit.VerifyHistory(context.Background(), tx)
			return err
		})
		if err != nil || len(v.Findings) > 0 {
			return true
		}
		root, err := rootOf(s, size)
		return err != nil || root != checkpoint.Root
	}
	if found() {
		t.Fatal("the ledger is not whole before")
	}
	all := slices.Concat(cellsOf(t, db, "events", "pos"), cellsOf(t, db, "blocks", "n"),
		cellsOf(t, db, "seals", "n", "at"))
	type change struct {
		cell
		i int
	}
	var changes []change
	for _, c := range all {
		for i := range c.size() {
			changes = append(changes, change{c, i})
		}
	}
	seed := rand.Uint64()                  // #nosec G404 -- a test's choice
	dice := rand.New(rand.NewPCG(1, seed)) // #nosec G404 -- a test's choice
	dice.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	tried := 0
	for _, c := range changes[:min(len(changes), ledgertest.Size(60, 100, 3000))] {
		value := c.changed(c.i, byte(1+dice.IntN(255)))
		update := fmt.Sprintf(`UPDATE %s SET %s = ? WHERE %s = ?`, c.table, c.column, c.key)
		if _, err := db.Exec(update, value, c.n); err != nil {
			continue // a number that is taken, a text for a hash
		}
		tried++
		if !found() {
			t.Errorf("not found: %s.%s of %d from %v to %v", c.table, c.column, c.n, c.value, value)
		}
		n := any(c.n)
		if c.column == c.key {
			n = value
		}
		if _, err := db.Exec(update, c.value, n); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d changes, by seed %d", tried, len(changes), seed)
	if found() {
		t.Error("the ledger is not whole afterwards")
	}
}
