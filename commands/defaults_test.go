package commands_test

import (
	"errors"
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
	"jobledger/projection/defaults"
)

var slowMail = defaults.Spec{MaxAttempts: 8, MaxRuntime: 5 * time.Minute,
	Backoff: event.Backoff{Min: time.Minute, Max: 3 * time.Minute, Factor: 2}}

func (q *queue) setDefaults(to defaults.Spec) (changed bool) {
	q.T.Helper()
	changed, err := q.SetDefaults(q.T.Context(), "cli:test", "mail", to, "")
	if err != nil {
		q.T.Fatalf("set defaults: %v", err)
	}
	return changed
}

func given(j projection.Job) defaults.Spec {
	return defaults.Spec{MaxAttempts: j.MaxAttempts, MaxRuntime: j.MaxRuntime, Backoff: j.Backoff}
}

func TestDefaultsConcernLaterJobs(t *testing.T) {
	q := newQueue(t)
	none := defaults.Spec{MaxAttempts: projection.DefaultMaxAttempts}
	before := q.enqueue(commands.Enqueue{})
	if got := given(before); got != none {
		t.Errorf("without defaults: %+v", got)
	}
	if !q.setDefaults(slowMail) || q.setDefaults(slowMail) {
		t.Error("the first time changes something, the second does not")
	}
	if got := given(q.enqueue(commands.Enqueue{})); got != slowMail {
		t.Errorf("after they were set: %+v", got)
	}
	if got := given(q.enqueue(commands.Enqueue{Queue: "other"})); got != none {
		t.Errorf("in another queue: %+v", got)
	}
	own := defaults.Spec{MaxAttempts: 5, MaxRuntime: time.Hour, Backoff: event.DefaultBackoff}
	if got := given(q.enqueue(commands.Enqueue{MaxAttempts: own.MaxAttempts, MaxRuntime: own.MaxRuntime,
		Backoff: own.Backoff})); got != own {
		t.Errorf("of a job that says all itself: %+v", got)
	}
	if got := given(q.fresh(before.ID)); got != none {
		t.Errorf("of the job from before: %+v", got)
	}
	q.setDefaults(defaults.Spec{MaxAttempts: 2})
	if got := given(q.enqueue(commands.Enqueue{})); got != (defaults.Spec{MaxAttempts: 2}) {
		t.Errorf("after only the attempts were set: %+v", got)
	}
	q.setDefaults(defaults.Spec{})
	if got := given(q.enqueue(commands.Enqueue{})); got != none {
		t.Errorf("after they were taken away: %+v", got)
	}
}

func TestDefaultsBackoffIsWaited(t *testing.T) {
	q := newQueue(t)
	q.setDefaults(slowMail)
	q.enqueue(commands.Enqueue{})
	for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
		j := q.claimOne("w")
		j = q.do(j, commands.Fail{Token: j.Token, Code: "x"})
		if wait := j.RunAt.Sub(q.Now); wait < want*8/10 || wait > want*12/10 {
			t.Errorf("failure %d: %s, want %s ± 20%%", n+1, wait, want)
		}
		q.Now = j.RunAt
	}
	j := q.claimOne("w")
	if want := q.Now.Add(5 * time.Minute); !j.EndBy.Equal(want) {
		t.Errorf("the claim ends by %s, want %s", j.EndBy, want)
	}
	if j = q.do(j, commands.Release{Token: j.Token, Snooze: true}); j.RunAt.Sub(q.Now) < 48*time.Second {
		t.Errorf("a snooze waits for %s", j.RunAt.Sub(q.Now))
	}
}

// TestDefaultsOfAnotherProcessBindAtOnce: a process that has enqueued before learns of defaults that another
// one sets, and of a transaction of its own that failed.
func TestDefaultsOfAnotherProcessBindAtOnce(t *testing.T) {
	q := newQueue(t)
	other := &commands.Service{Store: ledgertest.OpenAt(t, q.Store.DSN())}
	other.Store.Now = func() time.Time { return q.Now }
	q.enqueue(commands.Enqueue{})
	for n := range 4 {
		to := defaults.Spec{MaxAttempts: n + 1}
		if _, err := other.SetDefaults(t.Context(), "cli:other", "mail", to, ""); err != nil {
			t.Fatal(err)
		}
		if got := given(q.enqueue(commands.Enqueue{})); got != to {
			t.Errorf("got %+v, want %+v", got, to)
		}
	}
	failed := errors.New("failed")
	err := q.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		body := defaults.Spec{MaxAttempts: 99}.Body("mail", "")
		err := tx.Append(t.Context(), event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:test", Body: body})
		if err != nil {
			return err
		}
		if set, err := defaults.Current(t.Context(), tx); err != nil || set["mail"].MaxAttempts != 99 {
			t.Errorf("within the transaction: %+v, %v", set["mail"], err)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if got := given(q.enqueue(commands.Enqueue{})); got.MaxAttempts != 4 {
		t.Errorf("after a transaction that failed: %+v", got)
	}
}

func TestDefaultsAreChecked(t *testing.T) {
	q := newQueue(t)
	for name, to := range map[string]defaults.Spec{
		"attempts": {MaxAttempts: -1}, "more attempts": {MaxAttempts: commands.MaxMaxAttempts + 1},
		"time": {MaxRuntime: -time.Second}, "backoff": {Backoff: event.Backoff{Min: time.Second}},
		"factor": {Backoff: event.Backoff{Min: time.Second, Max: time.Second, Factor: 0.5}},
	} {
		if _, err := q.SetDefaults(t.Context(), "cli:test", "mail", to, ""); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := q.SetDefaults(t.Context(), "cli:test", "No Queue", slowMail, ""); !errors.Is(err,
		commands.ErrInvalid) {
		t.Errorf("a bad name: %v", err)
	}
	if n := q.Tail(); n != 0 {
		t.Errorf("%d events", n)
	}
}

// TestDefaultsSurviveRebuildAndImport: what a job got is in its own event, and what the queue has in its own.
func TestDefaultsSurviveRebuildAndImport(t *testing.T) {
	q := newQueue(t)
	q.setDefaults(slowMail)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w")
	j = q.do(j, commands.Fail{Token: j.Token, Code: "x"})
	if _, err := q.Rebuild(t.Context(), "cli:test"); err != nil {
		t.Fatal(err)
	}
	for _, staging := range []bool{false, true} {
		other := &queue{commandstest.On(t, ledgertest.Open(t))}
		other.Staging, other.Now = staging, q.Now
		_, err := load.Import(t.Context(), other.Service, "cli:test", "q",
			q.Store.Lines(t.Context(), ledger.Filter{}, true), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := given(other.fresh(j.ID)); got != slowMail {
			t.Errorf("staging %t: the job in the copy has %+v", staging, got)
		}
		if got := given(other.enqueue(commands.Enqueue{})); got != slowMail {
			t.Errorf("staging %t: a new job in the copy has %+v", staging, got)
		}
		other.Verify()
	}
}

// TestDefaultsBackoffIsVerified: a retry that a job's own backoff does not allow is found, however normal it
// is.
func TestDefaultsBackoffIsVerified(t *testing.T) {
	q := newQueue(t)
	q.setDefaults(slowMail)
	q.enqueue(commands.Enqueue{})
	for range 2 {
		q.claimOne("w")
		q.Now = q.Now.Add(2 * time.Minute)
		q.sweep()
		q.Now = q.Now.Add(2 * time.Minute)
		q.sweep()
		q.Now = q.Now.Add(5 * time.Minute)
	}
	for name, retry := range map[string]struct {
		after   time.Duration
		refused bool
	}{"its own": {2 * time.Minute, false}, "the normal one": {2 * time.Second, true}} {
		forged := func(yield func(event.Line, error) bool) {
			for line, err := range q.Store.Lines(t.Context(), ledger.Filter{}, true) {
				if b, ok := line.Event.Body.(*event.Reclaimed); ok && line.Attempt == 2 {
					b.RetryAt = line.At.Add(retry.after)
				}
				if !yield(line, err) {
					return
				}
			}
		}
		other := &commands.Service{Store: ledgertest.Open(t)}
		other.Store.Now = func() time.Time { return q.Now }
		_, err := load.Import(t.Context(), other, "cli:test", "q", forged, nil)
		if refused := err != nil; refused != retry.refused || refused && !strings.Contains(err.Error(),
			"V19: to be retried after 2s") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
