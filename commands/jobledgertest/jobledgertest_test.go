package jobledgertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/jobledgertest"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// shipper fails twice, then snoozes, then succeeds.
func shipper() *worker.Mux {
	mux := new(worker.Mux)
	worker.Handle(mux, "ship", func(ctx context.Context, job worker.Job[struct{ To string }]) (any, error) {
		switch {
		case job.Args.To == "":
			return nil, &worker.Error{Code: "no_address", NoRetry: true}
		case job.Attempt < 3:
			return nil, errors.New("no route")
		case job.Attempt == 3:
			return nil, worker.Snooze(24 * time.Hour)
		}
		return "P17", nil
	})
	return mux
}

// The same program gives the same history, and the clock runs to where the job ends.
func TestLedgerRunsToEnd(t *testing.T) {
	l := jobledgertest.Open(t, ledgertest.New(t))
	job := l.Add(commands.Enqueue{Queue: "ship", Payload: []byte(`{"To":"Ada"}`)})
	bad := l.Add(commands.Enqueue{Queue: "ship", Payload: []byte(`{}`), RunAt: l.Now().Add(time.Hour)})
	stats := l.RunToEnd(shipper())
	if want := (worker.Stats{Claimed: 5, Succeeded: 1, Failed: 3, Released: 1}); stats != want {
		t.Errorf("got %+v, want %+v", stats, want)
	}
	if got := l.RequireSucceeded(job.ID); string(got.Result) != `"P17"` {
		t.Errorf("result %q", got.Result)
	}
	l.RequireFailed(bad.ID, "no_address")
	l.RequireKinds(job.ID, "enqueued claimed failed claimed failed claimed released claimed succeeded")
	l.Golden(job.ID, "testdata/ship.golden")
	if passed := l.Now().Sub(jobledgertest.Epoch); passed < 24*time.Hour || passed > 25*time.Hour {
		t.Errorf("%s passed", passed)
	}
}

func TestLedgerRunsOneJob(t *testing.T) {
	l := jobledgertest.New(t)
	job := l.Run(shipper(), commands.Enqueue{Queue: "ship", Payload: []byte(`{"To":"Ada"}`)})
	l.RequireState(job.ID, event.Queued)
	if job.Failures != 1 || job.RunAt.Sub(l.Now()) < 500*time.Millisecond {
		t.Errorf("after one attempt: %+v", job)
	}
	if stats := l.Drain(shipper()); stats.Claimed != 0 {
		t.Errorf("the clock stands still, and %+v", stats)
	}
	l.Advance(time.Minute)
	if stats := l.Drain(shipper()); stats.Failed != 1 {
		t.Errorf("a minute later: %+v", stats)
	}
	if plain := l.Run(worker.HandlerFunc(func(_ context.Context, j projection.Job) ([]byte, error) {
		return j.Payload, nil
	}), commands.Enqueue{Payload: []byte("x")}); string(plain.Result) != "x" || plain.Queue != "test" {
		t.Errorf("got %+v", plain)
	}
}

// stopped is a test that notes how it was ended.
type stopped struct {
	testing.TB
	why string
}

func (s *stopped) Fatalf(format string, args ...any) {
	s.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (s *stopped) Helper() {}

// Each check that fails ends the test and shows the history.
func TestChecksEndTheTest(t *testing.T) {
	golden := filepath.Join(t.TempDir(), "wrong.golden")
	if err := os.WriteFile(golden, []byte("+0s enqueued by another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const none = "01KDY9FY880000000000000009"
	type ledger = jobledgertest.Ledger
	for name, check := range map[string]func(*ledger, event.JobID){
		"is failed, want succeeded":  func(l *ledger, id event.JobID) { l.RequireSucceeded(id) },
		`failed with "no_address"`:   func(l *ledger, id event.JobID) { l.RequireFailed(id, "other") },
		"enqueued claimed failed, w": func(l *ledger, id event.JobID) { l.RequireKinds(id, "enqueued") },
		"is not that of":             func(l *ledger, id event.JobID) { l.Golden(id, golden) },
		"does not exist":             func(l *ledger, id event.JobID) { l.Golden(id, golden+"x") },
		"no such job":                func(l *ledger, _ event.JobID) { l.Job(none) },
	} {
		fake := &stopped{TB: t}
		l := jobledgertest.New(fake)
		job := l.Run(shipper(), commands.Enqueue{Queue: "ship", Payload: []byte(`{}`)})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			check(l, job.ID)
			fake.why = "it went on"
		}()
		<-ended
		shows := name == "no such job" || strings.Contains(fake.why, "enqueued by")
		if !strings.Contains(fake.why, name) || !shows {
			t.Errorf("%s: ended with %q", name, fake.why)
		}
	}
	t.Setenv(jobledgertest.UpdateGolden, "1")
	l := jobledgertest.New(t)
	job := l.Add(commands.Enqueue{})
	l.Golden(job.ID, golden)
	t.Setenv(jobledgertest.UpdateGolden, "")
	l.Golden(job.ID, golden)
}
