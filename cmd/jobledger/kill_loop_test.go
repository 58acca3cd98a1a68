//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

var (
	killFor  = flag.Duration("kill-for", 0, "kill processes at random for so long; default 2s, with -long 4s")
	killSeed = flag.Uint64("kill-seed", 0, "what chance begins with; 0: the time")
)

// killRun is a site on which processes of every kind are killed all the time, with a record of what was
// acknowledged.
type killRun struct {
	rig
	until time.Time
	seed  uint64
	kills atomic.Int64

	reclaimed atomic.Bool // a job has been

	mu     sync.Mutex
	sent   map[string]string // payload → the printed id; empty if its sender was killed before
	claims map[string]string // token → job, as printed
	ends   map[string]string // token → the acknowledged result
}

// client starts processes one after another in its own goroutine, with its own random source.
type client struct {
	*killRun
	rig
	name string
	dice *rand.Rand
}

func (m *killRun) client(number uint64, name string) *client {
	r := m.rig
	r.TB = named{m.TB, name}
	return &client{m, r, name, rand.New(rand.NewPCG(m.seed, number))}
}

// over reports whether the time is up. On a slow machine the test continues until there were some kills, and
// one of them made a job lost that was reclaimed.
func (h *client) over() bool {
	late := time.Since(h.until)
	return h.Failed() || late > 0 && h.kills.Load() >= fewKills && h.reclaims() || late > time.Minute
}

// reclaims reports whether a job has been reclaimed.
func (m *killRun) reclaims() bool {
	if !m.reclaimed.Load() && m.do(invoke("events", "--kind", "reclaimed", "--last", "1",
		"--json")).stdout != "" {
		m.reclaimed.Store(true)
	}
	return m.reclaimed.Load()
}

const fewKills = 30

// anywhere returns a random failpoint of a command that writes, or of a worker.
func (h *client) anywhere() string {
	steps := slices.Concat(writeSteps, workSteps)
	return fmt.Sprint(steps[h.dice.IntN(len(steps))], ":", 1+h.dice.IntN(3)*h.dice.IntN(3))
}

// try runs a command that is killed at some failpoint, after a random delay, or not at all.
func (h *client) try(within time.Duration, i invocation) exit {
	h.Helper()
	if h.dice.IntN(3) == 0 {
		return h.do(i)
	}
	return h.runAndKill(within, i)
}

// runAndKill runs a command that is killed at some failpoint, or after a random delay.
func (h *client) runAndKill(within time.Duration, i invocation) exit {
	h.Helper()
	// covers fast machines and slow ones
	after := time.Duration(h.dice.Int64N(int64(within) << (2 * h.dice.IntN(2))))
	if h.dice.IntN(2) == 0 {
		i, after = i.dyingAt(h.anywhere()), 10*within
	}
	got := h.kill(i, after)
	if got.killed {
		h.kills.Add(1)
	}
	return got
}

// produce enqueues. A job with a key is sent again until it is acknowledged; a job without a key is sent
// once.
func (h *client) produce() {
	for n := 0; !h.over(); n++ {
		payload, queue := fmt.Sprint(h.name, "-", n), "mail"
		if n%4 == 3 {
			queue = "shell"
		}
		i := invoke("enqueue", "-q", queue, "--max-attempts", "1000", payload)
		if n%2 == 0 {
			i = i.with("--key", payload)
		}
		if n%3 == 0 { // it becomes due while processes are killed
			i = i.with("--delay", "300ms")
		}
		h.note(h.sent, payload, "")
		got := h.try(50*time.Millisecond, i)
		if got.killed && n%2 == 0 && got.stdout == "" {
			got.stdout = h.must(0, i)
		} else if !got.killed && got.code != 0 {
			h.Errorf("enqueue: %d, %s", got.code, got.stderr)
		}
		h.note(h.sent, payload, strings.TrimSpace(got.stdout))
	}
}

func (h *client) note(into map[string]string, key, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	into[key] = value
}

// own claims with the command claim, and ends its claims.
func (h *client) own() {
	for !h.over() {
		got := h.try(50*time.Millisecond, invoke("claim", "-q", "shell", "--worker", h.name, "--lease", "1s",
			"--json"))
		if got.stdout == "" {
			if !got.killed && got.code != cli.ExitNothing {
				h.Errorf("claim: %d, %s", got.code, got.stderr)
			}
			continue
		}
		var job struct {
			ID    string `json:"id"`
			Token string `json:"lease_token"`
		}
		if err := json.Unmarshal([]byte(got.stdout), &job); err != nil {
			h.Errorf("claim: %v: %s", err, got.stdout)
			continue
		}
		h.note(h.claims, job.Token, job.ID)
		end := invoke("succeed", job.ID, "--token", job.Token, "--result", "of "+job.Token)
		if got = h.try(50*time.Millisecond, end); got.killed {
			got = h.do(end) // send it again
		}
		switch got.code {
		case 0:
			h.note(h.ends, job.Token, "of "+job.Token)
		case cli.ExitLeaseLost: // a sweeper was faster
		default:
			h.Errorf("succeed: %d, %s", got.code, got.stderr)
		}
	}
}

// work starts one worker after another.
func (h *client) work() {
	for n := 0; !h.over(); n++ {
		h.runAndKill(200*time.Millisecond, h.worker(fmt.Sprint(h.name, n)).with("--max-jobs", "20", "--", "sh",
			"-c", quickJob))
	}
}

// quickJob records the claim that it belongs to in one write, so that no line is split.
const quickJob = `echo $JOBLEDGER_JOB $JOBLEDGER_ATTEMPT >>ran; sleep 0.0$((JOBLEDGER_ATTEMPT % 9)); exec cat`

func (h *client) worker(name string) invocation {
	return invoke("work", "-q", "mail", "-q", "shell", "-j", "3", "--lease", "1s", "--worker", name)
}

// sweep starts one sweeper after another.
func (h *client) sweep() {
	for !h.over() {
		h.runAndKill(100*time.Millisecond, invoke("sweep", "--every", "100ms", "--grace", "200ms"))
		if h.dice.IntN(4) > 0 {
			continue
		}
		if got := h.try(50*time.Millisecond, invoke("sweep", "--grace", "0s")); !got.killed && got.code != 0 {
			h.Errorf("sweep: %d, %s", got.code, got.stderr)
		}
	}
}

// operate does what an operator may do, at bad times. verify must find nothing, whatever runs concurrently.
func (h *client) operate() {
	for n := 0; !h.over(); n++ {
		copied := fmt.Sprint("backup", n, ".db")
		for _, words := range [][]string{{"rebuild"}, {"pause", "-q", "mail"}, {"resume", "-q", "mail"},
			{"backup", copied}} {
			if got := h.try(50*time.Millisecond, invoke(words...)); !got.killed && got.code != 0 {
				h.Errorf("%s: %d, %s", words[0], got.code, got.stderr)
			}
		}
		h.must(0, invoke("resume", "-q", "mail"))
		h.must(0, invoke("verify"))
		if _, err := os.Stat(h.path(copied)); err == nil {
			h.must(0, invoke("verify", "--db", copied))
		}
	}
}

// TestKillRandomProcesses kills writers, workers, sweepers and operators for a while. Then it checks that
// nothing acknowledged is lost, that nothing is stored that was not sent, and that nothing was done twice.
func TestKillRandomProcesses(t *testing.T) {
	t.Parallel()
	m := &killRun{rig: newRig(t), seed: *killSeed, sent: make(map[string]string),
		claims: make(map[string]string), ends: make(map[string]string)}
	if m.seed == 0 {
		m.seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill-seed %d", m.seed)
	m.must(0, invoke("init"))
	steady := m.start(m.cmd(m.client(0, "").worker("steady").with("--", "sh", "-c", quickJob)))
	sweeper := m.start(m.cmd(invoke("sweep", "--every", "200ms")))
	// In one second, a slow machine may reclaim nothing.
	length := cmp.Or(*killFor, ledgertest.Size(2*time.Second, 2*time.Second, 4*time.Second))
	m.until = time.Now().Add(length)
	var group sync.WaitGroup
	number := uint64(0)
	for name, act := range map[string]func(*client){
		"producer": (*client).produce, "writer": (*client).produce,
		"owner":  (*client).own,
		"worker": (*client).work, "labourer": (*client).work, "sweeper": (*client).sweep,
		"operator": (*client).operate} {
		number++
		h := m.client(number, name)
		group.Go(func() { act(h) })
	}
	group.Wait()
	for _, p := range []*running{steady, sweeper} {
		p.signal(syscall.SIGTERM)
		p.wantExit(0)
	}
	m.noProcessLeft()
	m.finish()
	m.judge()
}

// finish reclaims the jobs of the killed processes, and runs every job to its end. It moves the clock by
// hours, because a job that has failed a few times has a long backoff.
func (m *killRun) finish() {
	m.Helper()
	for _, queue := range []string{"mail", "shell"} {
		m.must(0, invoke("resume", "-q", queue))
	}
	m.must(0, invoke("sweep", "--grace", "0s").ahead(time.Hour))
	m.must(0, m.client(0, "").worker("last").with("--drain", "--", "sh", "-c", quickJob).ahead(48*time.Hour))
	m.noProcessLeft()
	m.must(0, invoke("verify"))
}

func (m *killRun) judge() {
	m.Helper()
	jobs := make(map[event.JobID]*jobRecord)
	var order []event.JobID
	kinds := make(map[event.Kind]int)
	for _, e := range m.history(db) {
		if kinds[e.Kind()]++; e.N == 0 {
			continue
		}
		if e.Kind() == event.KindEnqueued {
			jobs[e.Job], order = &jobRecord{claims: make(map[string]int)}, append(order, e.Job)
		}
		jobs[e.Job].add(e)
	}
	m.ledger(db, func(store *ledger.Store) {
		for _, id := range order {
			jobs[id].payload, jobs[id].result = m.bodies(store, id)
		}
	})
	m.judgeSent(jobs)
	m.judgeOwned(jobs)
	for _, id := range order {
		if l := jobs[id]; l.succeeded != 1 || !l.finished || l.open != 0 {
			m.Errorf("job %s ended %d times: %+v", id, l.succeeded, l)
		}
	}
	m.judgeRuns(jobs)
	m.Logf("%d kills, %d jobs, %v", m.kills.Load(), len(jobs), kinds)
	if m.kills.Load() < fewKills || kinds[event.KindReclaimed] == 0 {
		m.Errorf("there were too few kills")
	}
}

// jobRecord is a job according to the ledger.
type jobRecord struct {
	payload, result string
	claims          map[string]int // token → attempt
	open            int            // live claims
	succeeded       int
	finished        bool   // according to the last event
	winner          string // the token that succeeded
}

func (l *jobRecord) add(e event.Event) {
	l.finished = e.To.Final() || l.finished && e.To == 0
	switch {
	case e.Kind() == event.KindClaimed:
		l.claims[e.Token] = e.Attempt
		l.open++
	case e.Kind().EndsClaim() && e.Attempt > 0:
		l.open--
	}
	if e.Kind() == event.KindSucceeded {
		l.succeeded++
		l.winner = e.Token
	}
}

func (m *killRun) bodies(store *ledger.Store, id event.JobID) (payload, result string) {
	m.Helper()
	err := store.Read(m.Context(), func(tx *ledger.Tx) error {
		j, _, err := projection.Get(m.Context(), tx, id)
		if err == nil {
			err = projection.LoadBodies(m.Context(), tx, &j)
		}
		payload, result = string(j.Payload), string(j.Result)
		return err
	})
	if err != nil {
		m.Error(err)
	}
	return payload, result
}

// judgeSent checks that acknowledged jobs are stored as they were sent, that jobs that were not acknowledged
// are stored at most once, and that there are no others.
func (m *killRun) judgeSent(jobs map[event.JobID]*jobRecord) {
	m.Helper()
	ids := make(map[string][]string)
	for id, l := range jobs {
		ids[l.payload] = append(ids[l.payload], string(id))
		if _, sent := m.sent[l.payload]; !sent {
			m.Errorf("no process sent job %s with %q", id, l.payload)
		}
	}
	extra := 0
	for payload, id := range m.sent {
		switch found := ids[payload]; {
		case id == "" && len(found) <= 1:
			extra += len(found)
		case !slices.Equal(found, []string{id}):
			m.Errorf("%q is %q, acknowledged was %q", payload, found, id)
		}
	}
	m.Logf("%d sent, %d that died unacknowledged are there", len(m.sent), extra)
}

// judgeOwned checks the claims and ends that were acknowledged to scripts.
func (m *killRun) judgeOwned(jobs map[event.JobID]*jobRecord) {
	m.Helper()
	for token, id := range m.claims {
		if l := jobs[event.JobID(id)]; l == nil || l.claims[token] == 0 {
			m.Errorf("the claim %s of job %s was acknowledged and is not there", token, id)
		} else if result, ended := m.ends[token]; ended && (l.winner != token || l.result != result) {
			m.Errorf("job %s: the end by %s was acknowledged; the ledger has %s, %q", id, token, l.winner, l.result)
		}
	}
	m.Logf("%d claims and %d ends by client", len(m.claims), len(m.ends))
}

// judgeRuns checks that each command belongs to a claim, and that no claim ran one twice.
func (m *killRun) judgeRuns(jobs map[event.JobID]*jobRecord) {
	m.Helper()
	text, err := os.ReadFile(m.path("ran"))
	if err != nil {
		m.Fatal(err)
	}
	ran := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		id, attempt, _ := strings.Cut(strings.TrimSpace(line), " ")
		if ran[line] {
			m.Errorf("attempt %s of job %s ran twice", attempt, id)
		}
		ran[line] = true
		if l := jobs[event.JobID(id)]; l == nil || !l.hasAttempt(attempt) {
			m.Errorf("attempt %s of job %s ran, and there is no such claim", attempt, id)
		}
	}
	for id, l := range jobs {
		if line := fmt.Sprintf("%s %d\n", id, l.claims[l.winner]); !ran[line] && m.ends[l.winner] == "" {
			if l.result != "of "+l.winner { // the script that sent it was killed before the answer
				m.Errorf("job %s succeeded by %s, and nothing ran", id, l.winner)
			}
		}
	}
}

func (l *jobRecord) hasAttempt(text string) bool {
	for _, n := range l.claims {
		if fmt.Sprint(n) == text {
			return true
		}
	}
	return false
}
