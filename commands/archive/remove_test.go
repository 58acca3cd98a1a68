package archive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
	"jobledger/projection/rebuild"
)

// everything is what the ledger has of each job: its row, and its events.
func everything(t *testing.T, store *ledger.Store) (jobs map[event.JobID]projection.Job,
	events map[event.JobID][]event.Event) {
	t.Helper()
	jobs, events = make(map[event.JobID]projection.Job), make(map[event.JobID][]event.Event)
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		ctx := t.Context()
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			events[e.Job] = append(events[e.Job], e)
		}
		for id := range events {
			if j, ok, err := projection.Get(ctx, tx, id); err != nil {
				return err
			} else if ok {
				jobs[id] = j
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return jobs, events
}

// checkCounts compares the counts of jobs up to some positions with the rows, without and with keyframes.
func checkCounts(t *testing.T, store *ledger.Store) {
	t.Helper()
	for range 2 {
		err := store.Read(t.Context(), func(tx *ledger.Tx) error {
			jobs, err := projection.List(t.Context(), tx, projection.Filter{})
			if err != nil {
				return err
			}
			tail, err := tx.Tail(t.Context())
			for pos := tail; err == nil && pos > 0; pos -= 1 + tail/23 {
				var n, want int64
				for _, j := range jobs {
					if j.N <= pos {
						want++
					}
				}
				if n, err = projection.CountUpTo(t.Context(), tx, pos); n != want {
					t.Errorf("%d jobs up to pos %d of %d, want %d, %v", n, pos, tail, want, err)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keyframe.Extend(t.Context(), store, 32); err != nil {
			t.Fatal(err)
		}
	}
}

// rootOf returns the root over the first size events.
func rootOf(t *testing.T, store *ledger.Store, size int64) (root proof.Hash) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		hashes, err := tree.New(t.Context(), tx, nil)
		if err != nil {
			return err
		}
		root, err = hashes.Root(t.Context(), size)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Whatever leaves is in the archive, and what stays is as it was.
func TestRemovalLosesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ledgertest.Size(1, 1, 15)) {
		random := rand.New(rand.NewPCG(seed, 6))
		s := ofNight(t, 1800+random.IntN(len(night())-1800))
		dir := filepath.Join(t.TempDir(), "archive")
		jobs, events := everything(t, s.Store)
		for range 1 + random.IntN(3) {
			closeSome(t, s, dir, random)
			m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
			if random.IntN(2) == 0 {
				m.KeepFailed = 1000 * 24 * time.Hour
			}
			m.KeepBodies = random.IntN(3) == 0
			if random.IntN(3) == 0 { // interrupted
				_, _, err := m.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
			} else if _, err := m.All(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			verify(t, s.Store)
		}
		m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
		if _, err := m.All(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		verify(t, s.Store)
		checkCounts(t, s.Store)
		left, stay := everything(t, s.Store)
		gone := 0
		hi := int64(0)
		for _, f := range check(t, s.Store, dir) {
			if hi = f.Hi; f.State != archive.Present {
				t.Errorf("%s is %s: %s", f.Path, f.State, f.Detail)
			}
		}
		for id, j := range jobs {
			want := events[id]
			if is, ok := left[id]; ok {
				if !reflect.DeepEqual(is, j) || !reflect.DeepEqual(stay[id], want) {
					t.Fatalf("%s has changed: %+v, was %+v", id, is, j)
				}
				old := j.State.Final() && time.Since(j.FinishedAt) > time.Hour
				if last := want[len(want)-1]; old && last.Pos <= hi {
					t.Errorf("%s ended at %s, by event %d of %d, and is still there", id, j.FinishedAt, last.Pos, hi)
				}
				continue
			}
			if gone++; !j.State.Final() || len(stay[id]) > 0 {
				t.Fatalf("%s is %s, and has left; %d of its events are left", id, j.State, len(stay[id]))
			}
			if gone > 20 {
				continue
			}
			got, _, err := archive.History(t.Context(), s.Store, dir, string(id))
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: the archive has %d of %d events, %v", id, len(got), len(want), err)
			}
		}
		if gone == 0 {
			t.Errorf("seed %d: nothing has left", seed)
		}
		for _, e := range events[""] {
			if !slices.ContainsFunc(stay[""], func(is event.Event) bool { return reflect.DeepEqual(is, e) }) {
				t.Errorf("the event %d, which concerns no job, has left", e.Pos)
			}
		}
		rebuildChangesNothing(t, s.Store)
	}
}

// closeSome closes up to three segments of what is due.
func closeSome(t *testing.T, s *commands.Service, dir string, random *rand.Rand) {
	t.Helper()
	due, err := archive.Due(t.Context(), s.Store, time.Hour)
	for range 1 + random.IntN(3) {
		if err == nil {
			_, err = archive.Close(t.Context(), s, due.Hi, archive.Options{Dir: dir, Actor: actor,
				Most: proof.BlockSize * (1 + random.Int64N(4))})
		}
		if errors.Is(err, archive.ErrNothing) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func rebuildChangesNothing(t *testing.T, store *ledger.Store) {
	t.Helper()
	var done rebuild.Report
	err := store.Write(t.Context(), func(tx *ledger.Tx) error {
		p, err := rebuild.New(t.Context(), tx)
		if err != nil {
			return err
		}
		done, err = p.Apply(t.Context(), tx)
		return err
	})
	jobs := done.Jobs
	if done.Jobs = 0; err != nil || !reflect.DeepEqual(done, rebuild.Report{}) {
		t.Errorf("rebuild of %d jobs changed %+v, %v", jobs, done, err)
	}
}

// A file that is missing, or not what the ledger names, keeps its events in the ledger.
func TestRemovalReadsTheFilesFirst(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 1600), t.TempDir()
	done := closeAll(t, s, dir, func() int64 { return 768 })
	path := filepath.Join(dir, fmt.Sprintf("%010d-%010d.jsonl.gz", done[0].Lo, done[0].Hi))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, before := everything(t, s.Store)
	for what, spoil := range map[string]func() error{
		"missing": func() error { return os.Remove(path) },
		"changed": func() error { return os.WriteFile(path, forge(t, text), 0o600) },
		"cut":     func() error { return os.WriteFile(path, text[:len(text)-1], 0o600) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
		if _, err := m.All(t.Context(), nil); err == nil {
			t.Errorf("%s: nothing was said", what)
		}
		if _, after := everything(t, s.Store); len(after) != len(before) {
			t.Errorf("%s: %d jobs are left of %d", what, len(after), len(before))
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, s.Store)
}

// The database itself lets an event go only as part of a segment.
func TestRemovalIsRefusedOfWhatIsNotArchived(t *testing.T) {
	s, dir := ofNight(t, 1600), t.TempDir()
	try := func(query string, args ...any) error {
		return s.Store.Write(context.Background(), func(tx *ledger.Tx) error {
			_, err := tx.Exec(query, args...)
			return err
		})
	}
	if err := try(`DELETE FROM events WHERE pos = 1`); err == nil {
		t.Error("an event was deleted before anything was archived")
	}
	done := closeAll(t, s, dir, func() int64 { return 768 })
	hi := done[len(done)-1].Hi
	for query, pos := range map[string]int64{
		`DELETE FROM events WHERE pos = ?`:                                 hi + 1,
		`DELETE FROM events WHERE pos = (SELECT max(pos) FROM events) - ?`: 0,
		`DELETE FROM segments WHERE hi > ?`:                                0,
		`UPDATE segments SET hi = hi + 256 WHERE hi > ?`:                   0,
		`INSERT INTO segments (hi, lo, pos) VALUES (?, 0, 1000000)`:        hi + 256,
		`UPDATE past SET key = 'x' WHERE queue > ?`:                        -1,
	} {
		if strings.Contains(query, "past") {
			continue // it is empty
		}
		if err := try(query, pos); err == nil {
			t.Errorf("%s: nothing was said", query)
		}
	}
	verify(t, s.Store)
}

// Every process that sweeps carries out the policy, in steps, and several may.
func TestKeeperCarriesOutThePolicy(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 2000), t.TempDir()
	keeper := func() *archive.Keeper {
		return &archive.Keeper{Service: s, Dir: dir, Actor: "sweeper:a", Every: 1, Events: 256, Time: time.Minute}
	}
	one, other := keeper(), keeper()
	step := func(k *archive.Keeper) {
		t.Helper()
		if err := k.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	jobs, _ := everything(t, s.Store)
	step(one) // off
	for i, want := range []bool{true, false} {
		changed, err := archive.SetPolicy(t.Context(), s, actor, event.ArchivePolicy{OlderThan: time.Hour})
		if err != nil || changed != want {
			t.Errorf("set %d: changed %t, %v", i, changed, err)
		}
	}
	if _, err := archive.SetPolicy(t.Context(), s, actor, event.ArchivePolicy{KeepFailed: 1}); !errors.Is(err,
		commands.ErrInvalid) {
		t.Errorf("a policy without an age: %v", err)
	}
	for range 8 {
		step(one)
		step(other)
		verify(t, s.Store)
	}
	left, _ := everything(t, s.Store)
	for id, j := range left {
		if jobs[id].State.Final() && j.N < 1500 && j.FinishedAt.Before(night()[1500].At) {
			t.Errorf("%s ended at %s and is still there", id, j.FinishedAt)
		}
	}
	if len(left) >= len(jobs) {
		t.Errorf("%d of %d jobs are left", len(left), len(jobs))
	}
	if files := check(t, s.Store, dir); len(files) < 7 {
		t.Errorf("%d files", len(files))
	}
	if _, err := archive.SetPolicy(t.Context(), s, actor, event.ArchivePolicy{}); err != nil {
		t.Fatal(err)
	}
	step(one)
	verify(t, s.Store)
}

// An event that stays is compared with its file, whatever has left around it.
func TestCheckFindsEditedEventsThatStay(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	s, dir := ofNight(t, 2000), t.TempDir()
	closeAll(t, s, dir, func() int64 { return 768 })
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
	if _, err := m.All(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	verify(t, s.Store)
	change(t, s.Store, `DROP TRIGGER events_no_update`, `UPDATE events SET actor = actor + 1
WHERE pos = (SELECT min(pos) FROM events WHERE job IS NOT NULL AND pos > 256)`)
	damaged := func(f archive.File) bool { return f.State == archive.Damaged }
	if files := check(t, s.Store, dir); !slices.ContainsFunc(files, damaged) {
		t.Errorf("the edited event was not found: %+v", files)
	}
	// Nor is one missed that leaves without a removed event.
	change(t, s.Store, `UPDATE events SET actor = actor - 1
WHERE pos = (SELECT min(pos) FROM events WHERE job IS NOT NULL AND pos > 256)`,
		`DROP TRIGGER events_no_delete`, `DELETE FROM jobs WHERE n = (SELECT min(job) FROM events)`,
		`DELETE FROM bodies WHERE pos IN (SELECT pos FROM events WHERE job = (SELECT min(job) FROM events))`,
		`DELETE FROM events WHERE job = (SELECT min(job) FROM events)`)
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Code == audit.FindRemoved }) {
			t.Errorf("verify found %+v", v.Findings)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A keyframe that is due behind what has left is of events that are there.
func TestKeyframesAfterARemovalAreOfEventsThatAreThere(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 2000), t.TempDir()
	closeAll(t, s, dir, func() int64 { return 256 })
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
	if _, err := m.All(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := keyframe.Extend(t.Context(), s.Store, 1500); err != nil {
			t.Fatal(err)
		}
		batch := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, 150)
		if _, err := s.Enqueue(t.Context(), actor, batch...); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, s.Store)
}

// A whole copy is the ledger as if nothing had left: the same events, so the same answers to every question.
func TestCopyIsTheWholeLedger(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ledgertest.Size(1, 1, 8)) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := ofNight(t, 1800+random.IntN(len(night())-1800))
		dir := filepath.Join(t.TempDir(), "archive")
		jobs, events := everything(t, s.Store)
		tail := int64(0)
		for _, list := range events {
			tail = max(tail, list[len(list)-1].Pos)
		}
		for range 3 {
			closeSome(t, s, dir, random)
			m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
			if _, err := m.All(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := archive.Reader{Store: s.Store, Dir: dir}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		copied, history := everything(t, whole)
		if !reflect.DeepEqual(copied, jobs) {
			t.Errorf("seed %d: %d jobs are not the %d that there were", seed, len(copied), len(jobs))
		}
		for id, list := range events {
			got := slices.DeleteFunc(history[id], func(e event.Event) bool { return e.Pos > tail })
			if !reflect.DeepEqual(got, list) {
				t.Errorf("seed %d: the events of %q differ", seed, id)
			}
		}
		if rootOf(t, whole, tail) != rootOf(t, s.Store, tail) {
			t.Errorf("seed %d: the roots differ", seed)
		}
		if err := whole.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Payloads and results that stay are counted, and Erase reaches them and the salt of a key.
func TestEraseReachesWhatIsLeft(t *testing.T) {
	t.Parallel()
	s, dir := ofNight(t, 2000), t.TempDir()
	closeAll(t, s, dir, func() int64 { return 768 })
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour, KeepBodies: true}
	gone, err := m.All(t.Context(), nil)
	if err != nil || gone.Kept == 0 || gone.Bodies != 0 {
		t.Fatalf("removed %+v, %v", gone, err)
	}
	verify(t, s.Store)
	erased := 0
	whole, err := archive.Reader{Store: s.Store, Dir: dir}.Open(t.Context()) // it has the ledger's bodies
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	for line, err := range whole.Lines(t.Context(), ledger.Filter{Until: 256}, true) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := line.Event.Body.(*event.Enqueued); !ok || line.Body == nil {
			continue
		}
		what, changed, err := archive.Erase(t.Context(), s, actor, dir, string(line.Job), "asked for")
		if errors.Is(err, commands.ErrConflict) {
			continue // it has not left
		}
		if err != nil || !changed || what.Bodies == 0 || what.Erased != line.Job {
			t.Fatalf("erased %+v, %t, %v", what, changed, err)
		}
		_, changed, err = archive.Erase(t.Context(), s, actor, dir, string(line.Job), "")
		if changed || err != nil {
			t.Errorf("erased twice, %v", err)
		}
		if erased++; erased == 5 {
			break
		}
	}
	verify(t, s.Store)
	change(t, s.Store, `DELETE FROM bodies WHERE pos = (SELECT max(b.pos) FROM bodies b
WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.pos = b.pos))`)
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if len(v.Findings) != 1 || v.Findings[0].Code != audit.FindRemoved {
			t.Errorf("verify found %+v", v.Findings)
		}
		return err
	})
	if err != nil || erased == 0 {
		t.Errorf("%d jobs were erased, %v", erased, err)
	}
}
