package ledger_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// A burst in which the server hangs is cancelled, and its function does the work. If the server does not
// hear of that, the outcome is unknown.
func TestPostgresBurstThatHangs(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T) (s *ledger.Store, pid int64, burst func(seconds int) error) {
		s = ledgertest.OpenAt(t, ledgertest.Postgres(t))
		s.SetServerAnswerTime(300 * time.Millisecond)
		s.SetLockWait(300 * time.Millisecond)
		write(t, s, func(tx *ledger.Tx) (err error) {
			pid, err = backend(t.Context(), tx)
			return errors.Join(err, note(t.Context(), tx, "a"))
		})
		burst = func(seconds int) error {
			plan := func(*ledger.Tx) *ledger.Burst {
				return &ledger.Burst{Within: []ledger.WarmupQuery{{
					Query: `SELECT pg_sleep(?)::text, 1 / ` + ledger.MayWrite + `::int`, Args: []any{float64(seconds)}}},
					Done: func(*ledger.Tx, []ledger.Answer) (base, tail int64, err error) { return 1, 1, nil }}
			}
			return s.WriteBurst(t.Context(), plan,
				func(tx *ledger.Tx) error { return note(t.Context(), tx, "function") })
		}
		must(t, burst(0)) // its statements are prepared now
		return s, pid, burst
	}
	t.Run("in a statement", func(t *testing.T) {
		t.Parallel()
		s, _, burst := begun(t)
		must(t, burst(600))
		if done, failed := s.Bursts(); done != 1 || failed != 1 {
			t.Errorf("%d bursts, and %d failed", done, failed)
		}
		wantActors(t, s, "a", "function")
	})
	t.Run("as a whole", func(t *testing.T) {
		t.Parallel()
		s, pid, burst := begun(t)
		must(t, syscall.Kill(int(pid), syscall.SIGSTOP))
		defer func() { _ = syscall.Kill(int(pid), syscall.SIGCONT) }()
		if err := burst(0); !errors.Is(err, ledger.ErrUnknown) {
			t.Errorf("got %v", err)
		}
		write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "c") })
		wantActors(t, s, "a", "c")
	})
}

// A burst that gets no lock in time reports that. One that the server refuses halfway leaves nothing, and its
// function does the work.
func TestPostgresBurstThatFails(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	s, other := ledgertest.OpenAt(t, dsn), ledgertest.OpenAt(t, dsn)
	s.SetLockWait(100 * time.Millisecond)
	want := []string{"a"}
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	burst := func(queries ...string) error {
		b := &ledger.Burst{}
		for _, query := range append(queries, `SELECT max(pos), 1 / `+ledger.MayWrite+`::int FROM events`) {
			b.Within = append(b.Within, ledger.WarmupQuery{Query: query})
		}
		b.Done = func(_ *ledger.Tx, answers []ledger.Answer) (base, tail int64, err error) {
			tail, _ = answers[0].Rows[0][0].(int64)
			return tail, tail, nil
		}
		return s.WriteBurst(t.Context(), func(*ledger.Tx) *ledger.Burst { return b },
			func(tx *ledger.Tx) error {
				want = append(want, "function")
				return note(t.Context(), tx, "function")
			})
	}
	write(t, other, func(tx *ledger.Tx) error {
		if err := burst(); !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("without the lock: got %v", err)
		}
		return nil
	})
	failed := int64(0)
	for _, why := range []string{`SELECT 1 / 0`, `SELECT nothing`, raise("40001"), raise("40P01"),
		raise("53100"), raise("57014")} {
		must(t, burst(`DELETE FROM about`, why)) // the function follows
		must(t, burst())                         // this one does without, since one has failed
		must(t, burst())
		failed++
		if done, undone := s.Bursts(); done != failed || undone != failed || len(want) != 1+2*int(failed) {
			t.Errorf("%s: %d bursts, and %d failed, with %d functions", why, done, undone, len(want)-1)
		}
	}
	if err := burst(raise("55P03")); !errors.Is(err, ledger.ErrBusy) { // no lock of anything else
		t.Errorf("got %v", err)
	}
	// Without the condition nothing is written.
	unconditional := &ledger.Burst{Within: []ledger.WarmupQuery{{Query: `DELETE FROM write_lock`}}}
	want = append(want, "function")
	must(t, s.WriteBurst(t.Context(), func(*ledger.Tx) *ledger.Burst { return unconditional },
		func(tx *ledger.Tx) error { return note(t.Context(), tx, "function") }))
	if _, undone := s.Bursts(); undone != failed+1 {
		t.Errorf("%d bursts have failed", undone)
	}
	wantActors(t, s, want...)
}

func raise(code string) string {
	return `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '` + code + `'; END $$`
}
