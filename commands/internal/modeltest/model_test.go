package modeltest

import (
	"errors"
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
	"jobledger/projection/defaults"
)

// modelJob is a job according to the rules, written down a second time as plainly as possible.
type modelJob struct {
	id, queue, key, payload         string
	while                           string // how long key is its own; "": for ever
	keyFree, replaced               bool   // it has given its key up; its payload was exchanged
	after                           []modelEdge
	all                             *model
	version                         string
	requires                        []string
	priority, max                   int
	runAt                           time.Time
	runtime                         time.Duration
	policy                          event.Backoff
	state                           string
	attempt, failures, snoozes, seq int
	lease, endBy, beat              time.Time
	waits                           int // the seq of a retry that made it wait for its last command; 0: none did
	erased                          bool
	claims                          []*modelClaim    // the last one is the latest
	copies                          []projection.Job // copies that a caller may have kept
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
	waived        bool             // an operator does not wait for that
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
	if j.final() {
		j.keyFree = j.while != ""
		j.all.unread = append(j.all.unread, news{of: j})
	}
}

// fail ends a claim as a failure, to be retried after wait unless there were too many.
func (j *modelJob) fail(how string, by commands.Command, now time.Time, wait time.Duration, giveUp bool) {
	if j.failures++; giveUp || j.failures >= j.max {
		j.end(how, by, "failed", now)
		return
	}
	j.end(how, by, "queued", now.Add(wait))
}

// backoff scales that of a job without a policy of its own, whose wait after its first failure is 1 s.
func (j *modelJob) backoff(n int) time.Duration {
	if j.policy == (event.Backoff{}) {
		return commands.Backoff(event.JobID(j.id), j.attempt, n)
	}
	wait := j.policy.Min
	for range n - 1 {
		wait = min(wait*time.Duration(j.policy.Factor), j.policy.Max)
	}
	return wait / time.Second * commands.Backoff(event.JobID(j.id), j.attempt, 1)
}

// model is all jobs, and the ledger that should be like them.
type model struct {
	*commandstest.Scenario
	rt      *rapid.T
	dsn     string
	commits commitControl
	minted  int                     // how many tokens the claimers have made
	asked   []commands.ClaimRequest // the claims with such tokens
	ids     int                     // how many the service has requested
	orders  int                     // how many jobs got their own id
	jobs    []*modelJob
	unread  []news // what those that wait have not seen yet
	delays  []modelDelay
	paused  map[string]bool
	given   map[string]defaults.Spec // by queue
	ats     []time.Time              // of the events: at never decreases
	seen    []sight
}

// commitControl sets the outcome of COMMITs: all are acknowledged unless Once is called.
type commitControl interface {
	Once(v commandstest.CommitOutcome) // of the next COMMIT; all later ones are acknowledged
	AcknowledgeAll()
}

var modelQueues = []string{"a", "b"}

// stamp returns the fields that every event now has.
func (m *model) stamp() time.Time {
	at := m.Now
	if n := len(m.ats); n > 0 && m.ats[n-1].After(at) {
		at = m.ats[n-1]
	}
	m.ats = append(m.ats, at)
	return at
}

// TestModelAnyCommands runs random commands of several workers, operators and sweepers against the model:
// single and batched, with tokens and copies of jobs from any earlier time, with commits of unknown outcome,
// on a ledger that is closed and reopened. A failing sequence is shortened as far as possible.
func TestModelAnyCommands(t *testing.T) {
	longer(t)
	fresh := freshLedgers(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{Scenario: &commandstest.Scenario{T: t, Now: ledgertest.Epoch}, rt: rt,
			paused: map[string]bool{}, given: map[string]defaults.Spec{}}
		m.dsn, m.commits = fresh()
		m.open()
		defer m.close()
		actions := map[string]func(){
			"enqueue": m.enqueueAny, "claim": m.claimAny, "claim more": m.claimAny, "one command": m.one,
			"another command": m.one, "lose": m.lose,
			"several": m.several, "turn": m.turn, "sweep": m.sweepAll, "pause": m.pauseAny,
			"claim again": m.claimAgain, "set defaults": m.setDefaults, "look": m.look,
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

// freshLedgers returns a function that returns an empty ledger at each call, with the control of its commits.
// They are cheap: a copy of one file, or a schema of one database.
func freshLedgers(t *testing.T) func() (dsn string, commits commitControl) {
	t.Helper()
	round := 0
	if ledgertest.OnPostgres(t) {
		fewer(t)
		cutter, through := commandstest.NewCutter(t, ledgertest.Postgres(t))
		cutOne(t, cutter, through+"&schema=cut")
		return func() (string, commitControl) {
			round++
			return fmt.Sprintf("%s&schema=model%d", through, round), cutter
		}
	}
	ledgertest.Preset(t, "rapid.checks", ledgertest.Size("100", "30", "100")) // a fifth with -short
	folder, empty := t.TempDir(), ledgertest.EmptyFile(t)
	return func() (string, commitControl) {
		round++
		path := filepath.Join(folder, fmt.Sprint(round, ".db"))
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return path, commandstest.ControlCommits(path)
	}
}

// cutOne proves that the cutter cuts, whatever the sequences happen to do.
func cutOne(t *testing.T, c *commandstest.Cutter, dsn string) {
	t.Helper()
	s := commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	c.Once(commandstest.RolledBack)
	_, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "a"})
	if !errors.Is(err, ledger.ErrUnknown) || c.Cuts.Load() != 1 {
		t.Fatalf("%d connections were cut at a COMMIT: %v", c.Cuts.Load(), err)
	}
}

// longer makes sequences somewhat longer than rapid's default, unless the flag was given.
func longer(t *testing.T) {
	t.Helper()
	ledgertest.Preset(t, "rapid.steps", "40")
}

// fewer runs fewer sequences on a server, where each step takes some milliseconds.
func fewer(t *testing.T) {
	t.Helper()
	ledgertest.Preset(t, "rapid.checks", "20")
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

// successor returns another process of that worker.
func successor(name string) event.Worker {
	return event.Worker{Name: name, Boot: "second-boot-" + name}
}
