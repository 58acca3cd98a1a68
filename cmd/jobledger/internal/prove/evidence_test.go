package prove_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection/audit"
)

const actor = "cli:ada@build7"

// sealed returns a service on a ledger that is sealed, with jobs in queue mail.
func sealed(t testing.TB, jobs int) *commands.Service {
	t.Helper()
	s := &commands.Service{Store: ledgertest.Open(t)}
	if _, err := s.StartSealing(t.Context(), actor, "jobs.example.com", "", ""); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, jobs)
	return s
}

func enqueue(t testing.TB, s *commands.Service, jobs int) {
	t.Helper()
	if _, err := s.Enqueue(t.Context(), actor, slices.Repeat([]commands.Enqueue{{Queue: "mail"}},
		jobs)...); err != nil {
		t.Fatal(err)
	}
}

// head returns the checkpoint of the first size events.
func head(t testing.TB, s *commands.Service, size int64) proof.Checkpoint {
	t.Helper()
	c := proof.Checkpoint{Origin: "jobs.example.com", Size: size}
	read(t, s, func(tx *ledger.Tx) error {
		tr, err := tree.New(t.Context(), tx, nil)
		if err == nil {
			c.Root, err = tr.Root(t.Context(), size)
		}
		return err
	})
	return c
}

func read(t testing.TB, s *commands.Service, fn func(tx *ledger.Tx) error) {
	t.Helper()
	if err := s.Store.Read(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestCompareFindsWhereLedgersPart(t *testing.T) {
	s := sealed(t, 600)
	good, bad := []proof.Checkpoint{head(t, s, 1), head(t, s, 300), head(t, s, 601)}, head(t, s, 400)
	bad.Root[3] ^= 1
	later := head(t, s, 500)
	later.Root[3] ^= 1
	long := proof.Checkpoint{Origin: "jobs.example.com", Size: 700}
	foreign := proof.Checkpoint{Origin: "another", Size: 300, Root: good[1].Root}
	read(t, s, func(tx *ledger.Tx) error {
		a, err := prove.CompareAll(t.Context(), tx, good, prove.ByBlocks)
		if err != nil || !a.AllSame() || a.From != 0 || a.To != 0 {
			t.Errorf("all hold: got %+v, %v", a, err)
		}
		a, err = prove.CompareAll(t.Context(), tx, append([]proof.Checkpoint{later, bad}, good[:2]...),
			prove.ByEvents)
		if err != nil || a.AllSame() || a.From != 301 || a.To != 400 {
			t.Errorf("two differ: got %+v, %v", a, err)
		}
		for c, want := range map[proof.Checkpoint]prove.Verdict{bad: prove.Differs, long: prove.Shorter,
			foreign: prove.Foreign, good[1]: prove.Same} {
			got, err := prove.Compare(t.Context(), tx, c)
			if err != nil || got.Verdict != want || got.Restored != nil {
				t.Errorf("got %+v, %v, want %s", got, err, want)
			}
		}
		return nil
	})
}

// A restore is an explanation only for checkpoints of the events that it replaced.
func TestCompareKnowsWhatARestoreReplaced(t *testing.T) {
	s := sealed(t, 10)
	replaced := proof.Checkpoint{Origin: "jobs.example.com", Size: 20, Root: proof.LeafHash([]byte("x"))}
	err := s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		return tx.Append(t.Context(), event.Event{Pos: tx.Next(), At: tx.At(), Actor: actor,
			Body: &event.Restored{From: "old.db", Events: 11, HeadSize: 20, HeadRoot: replaced.Root.String()}})
	})
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 30)
	changed, within, behind, before := replaced, replaced, replaced, head(t, s, 11)
	changed.Root[0] ^= 1
	within.Size, behind.Size = 15, 21
	before.Root[0] ^= 1
	read(t, s, func(tx *ledger.Tx) error {
		for name, test := range map[string]struct {
			c              proof.Checkpoint
			known, exactly bool
		}{"its head": {replaced, true, true}, "another head": {changed, false, false},
			"within":    {within, true, false},
			"behind it": {behind, false, false}, "before the backup's end": {before, false, false}} {
			got, err := prove.Compare(t.Context(), tx, test.c)
			if err != nil || got.Same() || (got.Restored != nil) != test.known ||
				test.known && got.Restored.Exact != test.exactly {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
		}
		return nil
	})
}

func TestHandOutRefusesALedgerThatDiffersFromTheLastOne(t *testing.T) {
	s := sealed(t, 3)
	wrong := head(t, s, 4)
	wrong.Root[0] ^= 1
	text, err := wrong.Sign()
	if err != nil {
		t.Fatal(err)
	}
	if err := prove.RecordHandedOut(t.Context(), s.Store, prove.Head{Checkpoint: wrong}, text,
		"to:a"); err != nil {
		t.Fatal(err)
	}
	if h, err := prove.NextHead(t.Context(), s.Store); !errors.Is(err, prove.ErrForked) {
		t.Errorf("got %+v, %v", h, err)
	}
	file := filepath.Join(t.TempDir(), "kept")
	if err := prove.AppendFile(file, text); err != nil {
		t.Fatal(err)
	}
	if err := prove.CheckFile(t.Context(), s.Store, file); !errors.Is(err, prove.ErrForked) {
		t.Errorf("a file with another checkpoint: got %v", err)
	}
}

// Each place gets its own, also a smaller one than another place got meanwhile, and also one that is signed
// with other keys.
func TestHandOutIsPerPlace(t *testing.T) {
	s := sealed(t, 3)
	private, _, err := proof.GenerateKey("jobs.example.com")
	if err != nil {
		t.Fatal(err)
	}
	first, err := prove.NextHead(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, 1)
	second, err := prove.NextHead(t.Context(), s.Store)
	if err != nil {
		t.Fatal(err)
	}
	due := func(h prove.Head, keys []string, want ...string) {
		t.Helper()
		got, err := h.Due(t.Context(), s.Store, keys, []string{"a", "b", "a"})
		if !slices.Equal(got, want) || (len(want) == 0) != errors.Is(err, prove.ErrNothingNew) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	give := func(h prove.Head, keys []string, places ...string) {
		t.Helper()
		text, err := h.SignWith(keys)
		if err == nil {
			err = prove.RecordHandedOut(t.Context(), s.Store, h, text, places...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	due(second, nil, "a", "b")
	give(second, nil, "b")
	due(second, nil, "a")
	give(first, nil, "a")
	due(second, nil, "a")
	give(second, nil, "a")
	due(second, nil)
	due(second, []string{private}, "a", "b")
	give(second, []string{private}, "a")
	due(second, []string{private}, "b")
	due(second, nil)
	if v, err := audit.VerifyStore(t.Context(), s.Store, 0, nil); err != nil || len(v.Findings) > 0 {
		t.Errorf("verify: %+v, %v", v.Findings, err)
	}
}

func TestAppendFileRemovesWhatIsTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept")
	for _, text := range []string{"a\n", "b\n", "b\n", "a\n"} {
		if err := prove.AppendFile(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err := errors.Join(err, statErr); err != nil || string(got) != "a\nb\na\n" ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("got %q, %v, %v", got, info, err)
	}
}

// A checkpoint that could be written in part only, as on a full disk, takes none of another process with it.
func TestAppendFileWithdrawsOnlyItsOwn(t *testing.T) {
	for now, want := range map[string]string{"a\nb": "a\n", "a\n": "a\n", "a\nbc\n": "a\n",
		"a\nother\nb": "a\nother\nb",
		"other\n":     "other\n"} {
		name := filepath.Join(t.TempDir(), "kept")
		if err := os.WriteFile(name, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = prove.Withdraw(f, []byte("a\n"), []byte("bc\n"))
		got, readErr := os.ReadFile(name)
		if err := errors.Join(err, readErr, f.Close()); err != nil || string(got) != want {
			t.Errorf("%q: left %q, %v, want %q", now, got, err, want)
		}
	}
}

// TestProofsHoldForAnyHistory proves every job after random commands, erases some, and proves all again: what
// was proven before and after verifies, and 8 changed bytes anywhere in a proof are found.
func TestProofsHoldForAnyHistory(t *testing.T) {
	private, public, err := proof.GenerateKey("jobs.example.com")
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Preset(t, "rapid.checks", ledgertest.Size("15", "5", "200"))
	rapid.Check(t, func(rt *rapid.T) {
		s := sealed(t, 0)
		jobs := history(rt, s, rapid.IntRange(1, 40).Draw(rt, "steps"))
		if len(jobs) == 0 {
			return
		}
		if rapid.Bool().Draw(rt, "block") {
			enqueue(t, s, 300)
		}
		handOut(rt, s, private)
		before := proveAll(rt, s, jobs)
		for _, id := range jobs {
			if rapid.Bool().Draw(rt, "erase") {
				_, _ = s.Apply(t.Context(), actor, id, commands.Erase{Reason: "asked for"}) // of those that have ended
			}
		}
		handOut(rt, s, private)
		for _, text := range append(before, proveAll(rt, s, jobs)...) {
			if _, err := prove.Judge(text, []string{public}, nil); err != nil {
				rt.Fatal(err)
			}
			at := rapid.IntRange(0, len(text)-8).Draw(rt, "at")
			damaged := slices.Clone(text)
			for i := range 8 {
				damaged[at+i] ^= rapid.ByteRange(1, 255).Draw(rt, "bits")
			}
			if j, err := prove.Judge(damaged, []string{public}, nil); !errors.Is(err, proof.ErrInvalid) {
				rt.Fatalf("8 bytes from %d on changed: %+v, %v\n%s", at, j, err, damaged)
			}
		}
		if v, err := audit.VerifyStore(t.Context(), s.Store, 0, nil); err != nil || len(v.Findings) > 0 {
			rt.Fatalf("verify: %+v, %v", v.Findings, err)
		}
	})
}

// history makes random commands and returns the jobs that there are.
func history(rt *rapid.T, s *commands.Service, steps int) (jobs []event.JobID) {
	for range steps {
		switch rapid.IntRange(0, 3).Draw(rt, "step") {
		case 0, 1:
			list, err := s.Enqueue(rt.Context(), actor, commands.Enqueue{Queue: "mail", Payload: []byte("secret")})
			if err != nil {
				rt.Fatal(err)
			}
			jobs = append(jobs, list[0].ID)
		case 2:
			claimed, err := s.Claim(rt.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Lease: time.Minute,
				Worker: event.Worker{Name: "w1", Boot: "b1", Host: "h"}})
			if err != nil {
				rt.Fatal(err)
			}
			for _, j := range claimed {
				if _, err := s.Apply(rt.Context(), "worker:w1", j.ID, commands.Succeed{Token: j.Token}); err != nil {
					rt.Fatal(err)
				}
			}
		case 3:
			if len(jobs) > 0 {
				_, _ = s.Apply(rt.Context(), actor, rapid.SampledFrom(jobs).Draw(rt, "job"), commands.Cancel{})
			}
		}
	}
	return jobs
}

func handOut(rt *rapid.T, s *commands.Service, private string) {
	h, err := prove.NextHead(rt.Context(), s.Store)
	if err != nil {
		rt.Fatal(err)
	}
	text, err := h.SignWith([]string{private})
	if err == nil {
		err = prove.RecordHandedOut(rt.Context(), s.Store, h, text, "to:a")
	}
	if err != nil {
		rt.Fatal(err)
	}
}

func proveAll(rt *rapid.T, s *commands.Service, jobs []event.JobID) (texts [][]byte) {
	err := s.Store.Read(rt.Context(), func(tx *ledger.Tx) error {
		texts = nil
		for _, id := range jobs {
			n, err := tx.Number(rt.Context(), id)
			if err != nil {
				return err
			}
			var positions []int64
			for e, err := range tx.Events(rt.Context(), ledger.Filter{Job: n}) {
				if err != nil {
					return err
				}
				positions = append(positions, e.Pos)
			}
			p, err := prove.Prove(rt.Context(), tx, positions)
			if err != nil {
				return err
			}
			texts = append(texts, p.Text)
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	return texts
}
