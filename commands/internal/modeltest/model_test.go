package modeltest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// modelJob is what a job should be, by rules written down a second time in the plainest way.
type modelJob struct {
	id, queue, key, payload         string
	version                         string
	requires                        []string
	priority, max                   int
	runAt                           time.Time
	runtime                         time.Duration
	state                           string
	attempt, failures, snoozes, seq int
	lease, endBy, beat              time.Time
	waits                           int // the seq of a retry that made it wait for its last command; 0: none did
	erased                          bool
	claims                          []*modelClaim    // the last one is the latest
	copies                          []projection.Job // as it was seen at some time
	refused                         map[string]bool  // by token and command
}

type modelClaim struct {
	token, worker string
	boot          string           // of the process that holds it
	ended         string           // "": live; succeeded, failed, released, reclaimed, cancelled
	by            commands.Command // what ended it, if its owner did
	gaveUp        bool             // it failed for good
	until         time.Time        // its lease, when it ended
	stopped       bool             // the end of its command was reported
}

// lost reports whether the claim was taken from its owner, so that its command may run on.
func (c *modelClaim) lost() bool { return c.ended == "cancelled" || c.ended == "reclaimed" }

func (j *modelJob) live() *modelClaim {
	if len(j.claims) == 0 || j.claims[len(j.claims)-1].ended != "" {
		return nil
	}
	return j.claims[len(j.claims)-1]
}

func (j *modelJob) final() bool {
	return j.state == "succeeded" || j.state == "failed" || j.state == "cancelled"
}

func (j *modelJob) end(how string, by commands.Command, state string, runAt time.Time) {
	if c := j.live(); c != nil {
		c.ended, c.by, c.gaveUp, c.until = how, by, state == "failed", j.lease
	}
	j.state, j.lease, j.endBy = state, time.Time{}, time.Time{}
	if state == "queued" {
		j.runAt = runAt
	}
	j.seq++
}

// fail ends a claim as a failure, to be retried after wait unless there were too many.
func (j *modelJob) fail(how string, by commands.Command, now time.Time, wait time.Duration, giveUp bool) {
	if j.failures++; giveUp || j.failures >= j.max {
		j.end(how, by, "failed", now)
		return
	}
	j.end(how, by, "queued", now.Add(wait))
}

func (j *modelJob) backoff(n int) time.Duration {
	return commands.Backoff(event.JobID(j.id), j.attempt, n)
}

// model is all jobs, and the ledger that should be like them.
type model struct {
	*commandstest.Scenario
	rt      *rapid.T
	dsn     string
	commits judge
	ids     int // that the service has asked for
	orders  int // that have got an id of their own
	jobs    []*modelJob
	paused  map[string]bool
	ats     []time.Time // of the events: at never runs back
	seen    []sight
}

// judge decides what becomes of COMMITs: all are heard, unless it is set otherwise.
type judge interface {
	Once(v commandstest.Verdict) // the next one is v, all later ones are heard
	Hear()                       // all are heard
}

var modelQueues = []string{"a", "b"}

// stamp is what an event of now carries.
func (m *model) stamp() time.Time {
	at := m.Now
	if n := len(m.ats); n > 0 && m.ats[n-1].After(at) {
		at = m.ats[n-1]
	}
	m.ats = append(m.ats, at)
	return at
}

// TestModelAnyCommands runs random commands of several workers, operators and sweepers against the model:
// alone and several in a transaction, with tokens and copies of jobs from any earlier time, with commits of
// unknown outcome, on a ledger that is closed and opened in between. What goes wrong is made as short as
// it can be.
func TestModelAnyCommands(t *testing.T) {
	longer(t)
	fresh := freshLedgers(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{Scenario: &commandstest.Scenario{T: t, Now: ledgertest.Epoch}, rt: rt,
			paused: map[string]bool{}}
		m.dsn, m.commits = fresh()
		m.open()
		defer m.close()
		actions := map[string]func(){
			"enqueue": m.enqueueAny, "claim": m.claimAny, "claim more": m.claimAny, "one command": m.one,
			"another command": m.one, "lose": m.lose,
			"several": m.several, "turn": m.turn, "sweep": m.sweepAll, "pause": m.pauseAny, "look": m.look,
			"wait": func() {
				m.Now = m.Now.Add(
					time.Duration(rapid.IntRange(1, 40).Draw(m.rt, "seconds")) * time.Second)
			},
			"clock runs back": func() {
				m.Now = m.Now.Add(-time.Duration(rapid.IntRange(1, 20).Draw(m.rt, "seconds")) * time.Second)
			},
			"reopen": func() {
				if rapid.IntRange(0, 3).Draw(m.rt, "really") == 0 {
					m.close()
					m.open()
				}
			},
		}
		repeat := map[string]func(*rapid.T){"": func(rt *rapid.T) {
			if got := m.Tail(); got != int64(len(m.ats)) {
				rt.Fatalf("there are %d events, want %d", got, len(m.ats))
			}
		}}
		for name, action := range actions {
			repeat[name] = func(rt *rapid.T) {
				m.rt = rt
				action()
			}
		}
		rt.Repeat(repeat)
		m.rt = rt
		m.checkAll()
	})
}

// freshLedgers returns a function that gives an empty ledger at each call, with the judge of its commits.
// They take little to make: in a file a copy of one, on a server a schema of one database.
func freshLedgers(t *testing.T) func() (dsn string, commits judge) {
	t.Helper()
	round := 0
	if ledgertest.OnPostgres(t) {
		fewer(t)
		cutter, through := commandstest.NewCutter(t, ledgertest.Postgres(t))
		t.Cleanup(func() {
			if cutter.Cuts.Load() == 0 {
				t.Error("no connection was cut at its COMMIT")
			}
		})
		return func() (string, judge) {
			round++
			return fmt.Sprintf("%s&schema=model%d", through, round), cutter
		}
	}
	folder, empty := t.TempDir(), commandstest.EmptyLedger(t)
	return func() (string, judge) {
		round++
		path := filepath.Join(folder, fmt.Sprint(round, ".db"))
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return path, commandstest.JudgeCommits(path)
	}
}

// longer makes sequences somewhat longer than rapid does, unless it was given the length.
func longer(t *testing.T) {
	t.Helper()
	preset(t, "rapid.steps", "40")
}

// fewer makes fewer of them, where each step takes a server some milliseconds.
func fewer(t *testing.T) {
	t.Helper()
	preset(t, "rapid.checks", "20")
}

// preset sets a flag for the time of a test, unless it has been given.
func preset(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if before != f.DefValue {
		return
	}
	set := func(value string) {
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	set(value)
	t.Cleanup(func() { set(before) })
}

func (m *model) open() {
	m.rt.Helper()
	store, err := ledger.Open(m.T.Context(), ledgertest.Relaxed(m.dsn))
	if err != nil {
		m.rt.Fatal(err)
	}
	store.Now = func() time.Time { return m.Now }
	m.Service = &commands.Service{Store: store, NewID: func() string {
		m.ids++
		return id(1_000_000 + m.ids)
	}}
}

func (m *model) close() {
	m.rt.Helper()
	if err := m.Store.Close(); err != nil && !errors.Is(err, ledger.ErrClosed) {
		m.rt.Error(err)
	}
}

func id(n int) string { return fmt.Sprintf("01KDXYZAF8%016d", n) }

func worker(name string) event.Worker { return event.Worker{Name: name, Boot: "boot-" + name} }

// successor is another process of that worker.
func successor(name string) event.Worker {
	return event.Worker{Name: name, Boot: "second-boot-" + name}
}
