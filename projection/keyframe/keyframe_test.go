package keyframe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
	"jobledger/projection/keyframe"
	"jobledger/projection/rebuild"
	"jobledger/projection/status"
)

// badNight returns a ledger of a history of many jobs in several queues, and its events.
func badNight(t *testing.T) (s *ledger.Store, events []event.Event) {
	t.Helper()
	history, err := os.ReadFile(filepath.Join(historytest.Dir(t), "bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	s = ledgertest.Open(t)
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
		return l.End(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	read(t, s, func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		return nil
	})
	return s, events
}

// extended returns badNight with a keyframe after every given number of events.
func extended(t *testing.T, every int64) (s *ledger.Store, events []event.Event) {
	t.Helper()
	s, events = badNight(t)
	added, err := keyframe.Extend(t.Context(), s, every)
	if err != nil || added < 3 {
		t.Fatalf("%d keyframes, %v", added, err)
	}
	again, err := keyframe.Extend(t.Context(), s, every)
	if err != nil || again != 0 {
		t.Fatalf("%d keyframes more, %v", again, err)
	}
	wantClean(t, s)
	return s, events
}

// TestExtendByManyAtOnce: sweepers of several processes add each keyframe once.
func TestExtendByManyAtOnce(t *testing.T) {
	const every = 64
	s, _ := badNight(t)
	var added atomic.Int64
	var running sync.WaitGroup
	for range 6 {
		running.Go(func() {
			n, err := keyframe.Extend(t.Context(), s, every)
			added.Add(int64(n))
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	frames := int64(0)
	read(t, s, func(tx *ledger.Tx) error {
		for pos := int64(0); ; frames++ {
			k, more, err := keyframe.Next(t.Context(), tx, pos)
			if err != nil || !more {
				return err
			}
			pos = k.Pos
		}
	})
	if n := added.Load(); n != frames || frames < 3 {
		t.Errorf("%d were added, and there are %d", n, frames)
	}
	if again, err := keyframe.Extend(t.Context(), s, every); err != nil || again != 0 {
		t.Errorf("%d keyframes more, %v", again, err)
	}
	wantClean(t, s)
}

func wantClean(t *testing.T, s *ledger.Store) {
	t.Helper()
	v := verify(t, s)
	if len(v.Findings) > 0 {
		t.Fatal(v.Findings)
	}
}

func verify(t *testing.T, s *ledger.Store) (v audit.Verified) {
	t.Helper()
	read(t, s, func(tx *ledger.Tx) (err error) {
		v, err = audit.Verify(t.Context(), tx, nil)
		return err
	})
	inSteps, err := audit.VerifyStore(t.Context(), s, 0, nil)
	if err != nil || len(inSteps.Findings) != len(v.Findings) {
		t.Fatalf("in steps: %v, %v; at once: %v", inSteps.Findings, err, v.Findings)
	}
	return v
}

func read(t *testing.T, s *ledger.Store, fn func(tx *ledger.Tx) error) {
	t.Helper()
	if err := s.Read(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// TestFrameEqualsFold compares the frame at every event with a plain fold of the jobs.
func TestFrameEqualsFold(t *testing.T) {
	s, events := extended(t, 16)
	jobs := make(map[int64]projection.Job)
	read(t, s, func(tx *ledger.Tx) error {
		for _, e := range events {
			if e.N != 0 {
				j, err := projection.Evolve(jobs[e.N], e)
				if err != nil {
					return err
				}
				jobs[e.N] = j
			}
			ended, held, open := make(map[string]map[event.State]int64), 0, 0
			for _, j := range jobs {
				switch {
				case !j.State.Final():
					if open++; j.State.Held() {
						held++
					}
				case ended[j.Queue] == nil:
					ended[j.Queue] = map[event.State]int64{j.State: 1}
				default:
					ended[j.Queue][j.State]++
				}
			}
			f, err := keyframe.At(t.Context(), tx, e.Pos)
			if err != nil {
				return err
			}
			if got := f.Ended(); !reflect.DeepEqual(got, ended) {
				t.Fatalf("at %d: ended %v, want %v", e.Pos, got, ended)
			}
			if len(f.Held()) != held || len(f.Open()) != open {
				t.Fatalf("at %d: %d held of %d open, want %d of %d", e.Pos, len(f.Held()), len(f.Open()), held, open)
			}
			for _, n := range f.Held() {
				if !jobs[n].State.Held() {
					t.Fatalf("at %d: job %d is %s", e.Pos, n, jobs[n].State)
				}
			}
			for _, n := range f.Open() {
				if jobs[n].N == 0 || jobs[n].State.Final() {
					t.Fatalf("at %d: job %d is %s", e.Pos, n, jobs[n].State)
				}
			}
		}
		return nil
	})
}

// TestAnswersWithAndWithoutKeyframes compares the answers of two ledgers of the same events, of which one has
// keyframes.
func TestAnswersWithAndWithoutKeyframes(t *testing.T) {
	with, events := extended(t, 16)
	without, _ := badNight(t)
	step := ledgertest.Size(1201, 1201, 97)
	for pos := int64(0); pos <= int64(len(events)); pos += int64(step) {
		got, want := answers(t, with, pos, true), answers(t, without, pos, false)
		for question, answer := range want {
			if got[question] != answer {
				t.Fatalf("%s at %d:\n%s\nwithout keyframes:\n%s", question, pos, got[question], answer)
			}
		}
	}
}

func answers(t *testing.T, s *ledger.Store, pos int64, near bool) map[string]string {
	t.Helper()
	ctx, found := t.Context(), make(map[string]string)
	read(t, s, func(tx *ledger.Tx) error {
		if f, err := keyframe.Near(ctx, tx, pos); err != nil || (f != nil) != near {
			t.Fatalf("at %d: near %t, want %t, %v", pos, f != nil, near, err)
		}
		m, err := projection.AtPos(ctx, tx, pos)
		if err != nil {
			return err
		}
		to, err := projection.AtPos(ctx, tx, pos+40)
		if err != nil {
			return err
		}
		queues, err := status.Queues{At: m, Stranded: true}.Read(ctx, tx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			found["status --as-of"] += text(t, q)
		}
		present, err := status.Workers{At: m}.Read(ctx, tx)
		if err != nil {
			return err
		}
		atOnce, workersAtOnce, err := status.Both{At: m}.Read(ctx, tx)
		if err != nil {
			return err
		}
		if got, want := text(t, atOnce, workersAtOnce), text(t, queues, present); got != want &&
			len(queues)+len(present) > 0 {
			t.Errorf("all of %d at once:\n%s\neach alone:\n%s", pos, got, want)
		}
		now, err := status.Queues{At: projection.Now(to.At)}.Read(ctx, tx)
		if err != nil {
			return err
		}
		found["status"] = text(t, now)
		workers, err := status.Workers{At: m, All: true}.Read(ctx, tx)
		if err != nil {
			return err
		}
		for _, w := range workers {
			found["workers --as-of"] += text(t, w)
		}
		for name, f := range map[string]projection.Filter{"all": {}, "last": {Limit: 3},
			"open":    {States: []event.State{event.Queued, event.Running}},
			"held":    {States: []event.State{event.ClaimedState, event.Running}, Limit: 2},
			"waiting": {States: []event.State{event.Queued}, Queues: []string{"mail"}, Before: pos / 2},
			"failed":  {States: []event.State{event.FailedState, event.Queued}}} {
			jobs, err := projection.ListAsOf(ctx, tx, f, m)
			if err != nil {
				return err
			}
			found["list --as-of "+name] = text(t, jobs)
		}
		for name, f := range map[string]attempts.Filter{"all": {}, "first": {Limit: 4},
			"last": {Limit: 9, Last: true}, "after": {After: pos / 2}, "queue": {Queue: "mail"},
			"live": {Outcomes: []event.Kind{0}}, "ended": {Outcomes: []event.Kind{0, event.KindReclaimed}},
			"overlap": {Overlap: true}, "worker": {Worker: middle(workers)}} {
			f.From, f.To = m, to
			list, err := attempts.List(ctx, tx, f)
			if err != nil {
				return err
			}
			for _, a := range list {
				found["attempts "+name] += text(t, a)
			}
		}
		return nil
	})
	return found
}

// text returns the values as lines of JSON.
func text(t *testing.T, values ...any) (lines string) {
	t.Helper()
	for _, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines += string(line) + "\n"
	}
	return lines
}

// middle returns the name of one of the workers.
func middle(workers []status.Worker) string {
	if len(workers) == 0 {
		return "none"
	}
	return workers[len(workers)/2].Name
}

// TestVerifyFindsWrongKeyframes edits each cell of the keyframes, one at a time. Verify names the keyframe,
// answers stay correct if it cannot be read, and a rebuild removes it.
func TestVerifyFindsWrongKeyframes(t *testing.T) {
	s, _ := extended(t, 64)
	exec := func(statement string) {
		t.Helper()
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			changed, err := tx.Exec(statement)
			if err == nil && changed == 0 {
				err = fmt.Errorf("%s: nothing changed", statement)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	const last = ` WHERE pos = (SELECT max(pos) FROM keyframes)`
	edits := [...]struct{ name, statement string }{
		{"counts", `UPDATE keyframes SET ended = '{"mail":[1,2,3]}'` + last},
		{"no counts", `UPDATE keyframes SET ended = '{"mail":null}'` + last},
		{"list", `UPDATE keyframes SET ended = '[]'` + last},
		{"held", `UPDATE keyframes SET held = queued, queued = held` + last},
		{"none queued", `UPDATE keyframes SET queued = held` + last},
		{"pos", `UPDATE keyframes SET pos = pos - 40` + last},
		{"negative", `UPDATE keyframes SET pos = -7` + last},
		{"end", `UPDATE keyframes SET pos = pos + 1000000` + last},
	}
	for _, edit := range ledgertest.Sample(edits[:], 3) {
		t.Run(edit.name, func(t *testing.T) {
			exec(edit.statement)
			v := verify(t, s)
			if len(v.Findings) != 1 || v.Findings[0].Code != audit.FindKeyframe {
				t.Fatalf("%s: found %v", edit.statement, v.Findings)
			}
			var r rebuild.Report
			err := s.WriteRepair(t.Context(), func(tx *ledger.Tx) error {
				plan, err := rebuild.New(t.Context(), tx)
				if err == nil {
					r, err = plan.Apply(t.Context(), tx)
				}
				return err
			})
			if err != nil || r.Frames != 1 {
				t.Fatalf("rebuilt %+v, %v", r, err)
			}
			wantClean(t, s)
			if added, err := keyframe.Extend(t.Context(), s, 64); err != nil || added != 1 {
				t.Fatalf("%d keyframes added, %v", added, err)
			}
			wantClean(t, s)
		})
	}
}

// TestVerifySinceChecksLaterKeyframes verifies the events after a keyframe only.
func TestVerifySinceChecksLaterKeyframes(t *testing.T) {
	s, events := extended(t, 16)
	read(t, s, func(tx *ledger.Tx) error {
		for _, since := range []int64{1, int64(len(events)) / 2, int64(len(events)) - 1} {
			v, err := audit.VerifySince(t.Context(), tx, since, nil)
			if err != nil || len(v.Findings) > 0 {
				t.Fatalf("since %d: %v, %v", since, v.Findings, err)
			}
		}
		return nil
	})
	err := s.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`UPDATE keyframes SET ended = '{}' WHERE pos = (SELECT max(pos) FROM keyframes)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read(t, s, func(tx *ledger.Tx) error {
		v, err := audit.VerifySince(t.Context(), tx, int64(len(events))/2, nil)
		if err != nil || len(v.Findings) != 1 || v.Findings[0].Code != audit.FindKeyframe {
			t.Fatalf("%v, %v", v.Findings, err)
		}
		return nil
	})
}
