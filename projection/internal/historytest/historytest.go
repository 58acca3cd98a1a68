// Package historytest reads the histories of testdata/history and writes them into a ledger, for the tests of
// projection and audit. It is for tests only.
//
// Packages attempts, follow, keyframe, query and status use it in their tests too.
package historytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
	"jobledger/projection/deps"
	"jobledger/projection/limit"
	"jobledger/projection/schedules"
)

// Dir returns the folder of the histories, as the test of any package of this module sees it.
func Dir(t testing.TB) string {
	t.Helper()
	for up := ".."; len(up) < 30; up = filepath.Join("..", up) {
		dir := filepath.Join(up, "testdata", "history")
		if found, err := os.Stat(dir); err == nil && found.IsDir() {
			return dir
		}
	}
	t.Fatal("no folder testdata/history above this package")
	return ""
}

// Read reads a file of events in their public form. What that form leaves out is filled in as an import does:
// the job's number is the pos of its enqueued event, and of a claim's worker only claimed and
// taken_over say more than the name.
func Read(t testing.TB, name string) (events []event.Event) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Dir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(map[event.JobID]int64)
	type claim struct {
		job     event.JobID
		attempt int
	}
	owners := make(map[claim]event.Worker)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		switch e.Kind() {
		case event.KindEnqueued:
			numbers[e.Job] = e.Pos
		case event.KindClaimed, event.KindTakenOver:
			owners[claim{e.Job, e.Attempt}] = e.Worker
		}
		e.N = numbers[e.Job]
		if e.Attempt != 0 {
			e.Worker = owners[claim{e.Job, e.Attempt}]
		}
		events = append(events, e)
	}
	return events
}

// Fold is what a history adds up to: jobs by number, queues by name.
type Fold struct {
	Jobs      map[int64]projection.Job
	Queues    map[string]projection.Queue
	Sealing   projection.Sealing
	Schedules schedules.Fold
	Archived  []event.Archived
}

// Add takes the next event.
func (f *Fold) Add(e event.Event) error {
	err := f.Schedules.Add(e)
	if err != nil {
		return err
	}
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		f.Queues[b.Queue], err = projection.EvolveQueue(f.Queues[b.Queue], e)
	case *event.QueueResumed:
		f.Queues[b.Queue], err = projection.EvolveQueue(f.Queues[b.Queue], e)
	case *event.Archived:
		f.Archived = append(f.Archived, *b)
	case *event.Sealing:
		f.Sealing, err = projection.EvolveSealing(f.Sealing, e)
	default:
		if !e.Kind().OfJob() {
			return nil
		}
		f.Jobs[e.N], err = projection.Evolve(f.Jobs[e.N], e)
	}
	return err
}

// NewFold returns the Fold of no events.
func NewFold() *Fold {
	return &Fold{Jobs: make(map[int64]projection.Job), Queues: make(map[string]projection.Queue),
		Schedules: make(schedules.Fold)}
}

// bodiesOf are the payloads and results that the events of the histories name, by pos.
func bodiesOf(events []event.Event) map[int64]ledger.StoredBody {
	results := map[string]string{"001": "the result", "005": "secret", "008": "", "011": ""}
	erased := make(map[int64]bool)
	for _, e := range events {
		if e.Kind() == event.KindErased {
			erased[e.N] = true
		}
	}
	bodies := make(map[int64]ledger.StoredBody)
	for _, e := range events {
		if erased[e.N] {
			continue
		}
		name := string(e.Job)
		switch b := e.Body.(type) {
		case *event.Enqueued:
			name = name[len(name)-3:]
			bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Salt: []byte("salt of " + name),
				Body: []byte("payload of " + name)}
		case *event.Replaced:
			bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Body: []byte("another payload of " + name[len(name)-3:])}
		case *event.Succeeded:
			if b.ResultSHA256 != "" {
				bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Body: []byte(results[name[len(name)-3:]])}
			}
		}
	}
	return bodies
}

// Record writes a history into a ledger: rows, bodies and events.
func Record(t testing.TB, s *ledger.Store, events []event.Event) {
	t.Helper()
	bodies := bodiesOf(events)
	defer func(clock func() time.Time) { s.Now = clock }(s.Now)
	f := NewFold()
	waits := &deps.Fold{Find: f.find}
	for _, e := range events { // a transaction each, as they happened
		before := f.Jobs[e.N]
		s.Now = func() time.Time { return e.At }
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
		if wrong, err := waits.Add(&e); err != nil || wrong != "" {
			t.Fatalf("event %d: %s, %v", e.Pos, wrong, err)
		}
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			var err error
			switch b := e.Body.(type) {
			case *event.QueuePaused:
				err = projection.PutQueue(t.Context(), tx, f.Queues[b.Queue])
			case *event.QueueResumed:
				err = projection.PutQueue(t.Context(), tx, f.Queues[b.Queue])
			case *event.QueueLimited:
				var l, after limit.Limit
				if l, err = limit.Of(t.Context(), tx, b.Queue); err == nil {
					after, err = l.Evolve(e)
				}
				if err == nil {
					err = projection.PutLimit(t.Context(), tx, l, after)
				}
			default:
				if e.N != 0 {
					err = claims.Put(t.Context(), tx, before, f.Jobs[e.N])
				}
			}
			if name := schedules.Of(e.Body); name != "" && err == nil {
				if s, ok := f.Schedules[name]; ok {
					err = schedules.Put(t.Context(), tx, s)
				} else {
					err = schedules.Remove(tx, name)
				}
			}
			if err != nil {
				return err
			}
			if err := putWaits(t, tx, waits); err != nil {
				return err
			}
			if b, ok := bodies[e.Pos]; ok {
				if err := tx.PutBody(b.Pos, b.Salt, b.Body); err != nil {
					return err
				}
			}
			return tx.Append(t.Context(), e)
		})
		if err != nil {
			t.Fatalf("record event %d: %v", e.Pos, err)
		}
	}
}

// find returns the number of the job with this id, and its state.
func (f *Fold) find(id event.JobID, pos int64) (n int64, state event.State, err error) {
	for n, j := range f.Jobs {
		if j.ID == id {
			return n, j.State, nil
		}
	}
	return 0, 0, fmt.Errorf("event %d names the job %s, which there is not", pos, id)
}

// putWaits writes the tables of what jobs wait for.
func putWaits(t testing.TB, tx *ledger.Tx, f *deps.Fold) error {
	edges, resolving := f.Table()
	if waits, err := tx.HasDependencies(t.Context()); err != nil || !waits && len(edges) == 0 {
		return err
	}
	for _, name := range []string{"deps", "resolving"} {
		if _, err := tx.Exec("DELETE FROM " + name); err != nil {
			return err
		}
	}
	for _, e := range edges {
		if err := deps.Add(tx, e); err != nil {
			return err
		}
	}
	for _, r := range resolving {
		if err := r.Postpone(tx); err != nil {
			return err
		}
	}
	return nil
}
