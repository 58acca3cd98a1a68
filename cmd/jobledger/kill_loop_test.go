//go:build unix

package main

import (
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
	"jobledger/projection"
)

var (
	killFor  = flag.Duration("kill-for", 3*time.Second, "kill processes at random for so long")
	killSeed = flag.Uint64("kill-seed", 0, "what chance begins with; 0: the time")
)

// massacre is a site on which processes of every sort are killed all the time, and what these have acknowledged.
type massacre struct {
	rig
	until time.Time
	seed  uint64
	kills atomic.Int64

	mu     sync.Mutex
	sent   map[string]string // payload → the id that was printed; "" if its sender died before
	claims map[string]string // token → job, as they were printed
	ends   map[string]string // token → the result that was acknowledged
}

// hand is one who starts processes, one after the other, in a goroutine of its own. Its dice are its own.
type hand struct {
	*massacre
	rig
	name string
	dice *rand.Rand
}

func (m *massacre) hand(number uint64, name string) *hand {
	r := m.rig
	r.TB = named{m.TB, name}
	return &hand{m, r, name, rand.New(rand.NewPCG(m.seed, number))}
}

// over says that it is enough. On a slow machine it takes longer until there were some kills.
func (h *hand) over() bool {
	late := time.Since(h.until)
	return h.Failed() || late > 0 && h.kills.Load() >= fewKills || late > time.Minute
}

const fewKills = 30

// anywhere is a failpoint, of a command that writes or of a worker.
func (h *hand) anywhere() string {
	steps := slices.Concat(writeSteps, workSteps)
	return fmt.Sprint(steps[h.dice.IntN(len(steps))], ":", 1+h.dice.IntN(3)*h.dice.IntN(3))
}

// try runs a command that is killed at some step, after up to so long, or not at all.
func (h *hand) try(within time.Duration, i invocation) exit {
	h.Helper()
	if h.dice.IntN(3) == 0 {
		return h.do(i)
	}
	return h.doom(within, i)
}

// doom runs a command that is killed at some step, or after up to so long.
func (h *hand) doom(within time.Duration, i invocation) exit {
	h.Helper()
	after := time.Duration(h.dice.Int64N(int64(within) << (2 * h.dice.IntN(2)))) // for fast machines and slow ones
	if h.dice.IntN(2) == 0 {
		i, after = i.dyingAt(h.anywhere()), 10*within
	}
	got := h.kill(i, after)
	if got.killed {
		h.kills.Add(1)
	}
	return got
}

// produce enqueues. What has a key is sent again until it is acknowledged; what has none is sent once.
func (h *hand) produce() {
	for n := 0; !h.over(); n++ {
		payload, queue := fmt.Sprint(h.name, "-", n), "mail"
		if n%4 == 3 {
			queue = "shell"
		}
		i := invoke("enqueue", "-q", queue, "--max-attempts", "1000", payload)
		if n%2 == 0 {
			i = i.with("--key", payload)
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

func (h *hand) note(into map[string]string, key, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	into[key] = value
}

// own claims by hand, and ends what it has claimed.
func (h *hand) own() {
	for !h.over() {
		got := h.try(50*time.Millisecond, invoke("claim", "-q", "shell", "--worker", h.name, "--lease", "1s", "--json"))
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
			got = h.do(end) // the same once more
		}
		switch got.code {
		case 0:
			h.note(h.ends, job.Token, "of "+job.Token)
		case cli.ExitLeaseLost: // a sweeper was quicker
		default:
			h.Errorf("succeed: %d, %s", got.code, got.stderr)
		}
	}
}

// work lets worker after worker begin.
func (h *hand) work() {
	for n := 0; !h.over(); n++ {
		h.doom(200*time.Millisecond, h.worker(fmt.Sprint(h.name, n)).with("--max-jobs", "20", "--", "sh", "-c", quickJob))
	}
}

// quickJob notes which claim it works on, in one write, so that no line is broken.
const quickJob = `echo $JOBLEDGER_JOB $JOBLEDGER_ATTEMPT >>ran; sleep 0.0$((JOBLEDGER_ATTEMPT % 9)); exec cat`

func (h *hand) worker(name string) invocation {
	return invoke("work", "-q", "mail", "-q", "shell", "-j", "3", "--lease", "1s", "--worker", name)
}

// sweep lets sweeper after sweeper begin.
func (h *hand) sweep() {
	for !h.over() {
		h.doom(100*time.Millisecond, invoke("sweep", "--every", "100ms", "--grace", "200ms"))
		if h.dice.IntN(4) > 0 {
			continue
		}
		if got := h.try(50*time.Millisecond, invoke("sweep", "--grace", "0s")); !got.killed && got.code != 0 {
			h.Errorf("sweep: %d, %s", got.code, got.stderr)
		}
	}
}

// operate does what an operator might, at the worst time. verify must find nothing, whatever happens beside it.
func (h *hand) operate() {
	for n := 0; !h.over(); n++ {
		copied := fmt.Sprint("backup", n, ".db")
		for _, words := range [][]string{{"rebuild"}, {"pause", "-q", "mail"}, {"resume", "-q", "mail"}, {"backup", copied}} {
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

// TestKillRandomProcesses kills writers, workers, sweepers and operators for a while, and then looks whether anything
// acknowledged is lost, anything else is there that nobody sent, or anything was done twice.
func TestKillRandomProcesses(t *testing.T) {
	t.Parallel()
	m := &massacre{rig: newRig(t), seed: *killSeed, sent: make(map[string]string), claims: make(map[string]string), ends: make(map[string]string)}
	if m.seed == 0 {
		m.seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-kill-seed %d", m.seed)
	m.must(0, invoke("init"))
	steady := m.start(m.cmd(m.hand(0, "").worker("steady").with("--", "sh", "-c", quickJob)))
	sweeper := m.start(m.cmd(invoke("sweep", "--every", "200ms")))
	length := *killFor
	if testing.Short() {
		length = min(length, 2*time.Second) // in one, a slow machine may take nothing back
	}
	m.until = time.Now().Add(length)
	var group sync.WaitGroup
	number := uint64(0)
	for name, act := range map[string]func(*hand){"producer": (*hand).produce, "writer": (*hand).produce, "owner": (*hand).own,
		"worker": (*hand).work, "labourer": (*hand).work, "sweeper": (*hand).sweep, "operator": (*hand).operate} {
		number++
		h := m.hand(number, name)
		group.Go(func() { act(h) })
	}
	group.Wait()
	for _, p := range []*running{steady, sweeper} {
		p.signal(syscall.SIGTERM)
		p.wantExit(0)
	}
	m.nobodyLeft()
	m.finish()
	m.judge()
}

// finish takes back what the dead have held, and lets everything come to its end. Hours pass in between, for whoever
// has failed a few times waits long.
func (m *massacre) finish() {
	m.Helper()
	for _, queue := range []string{"mail", "shell"} {
		m.must(0, invoke("resume", "-q", queue))
	}
	m.must(0, invoke("sweep", "--grace", "0s").ahead(time.Hour))
	m.must(0, m.hand(0, "").worker("last").with("--drain", "--", "sh", "-c", quickJob).ahead(48*time.Hour))
	m.nobodyLeft()
	m.must(0, invoke("verify"))
}

func (m *massacre) judge() {
	m.Helper()
	jobs := make(map[ledger.JobID]*life)
	var order []ledger.JobID
	kinds := make(map[ledger.Kind]int)
	for _, e := range m.history(db) {
		if kinds[e.Kind()]++; e.N == 0 {
			continue
		}
		if e.Kind() == ledger.KindEnqueued {
			jobs[e.Job], order = &life{claims: make(map[string]int)}, append(order, e.Job)
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
	if m.kills.Load() < fewKills || kinds[ledger.KindReclaimed] == 0 {
		m.Errorf("that was no massacre")
	}
}

// life is what the ledger says of a job.
type life struct {
	payload, result string
	claims          map[string]int // token → attempt
	open            int            // claims that have not ended
	succeeded       int
	finished        bool   // the last event says so
	winner          string // the token that succeeded
}

func (l *life) add(e ledger.Event) {
	l.finished = e.To.Final() || l.finished && e.To == 0
	switch {
	case e.Kind() == ledger.KindClaimed:
		l.claims[e.Token] = e.Attempt
		l.open++
	case e.Kind().EndsClaim() && e.Attempt > 0:
		l.open--
	}
	if e.Kind() == ledger.KindSucceeded {
		l.succeeded++
		l.winner = e.Token
	}
}

func (m *massacre) bodies(store *ledger.Store, id ledger.JobID) (payload, result string) {
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

// judgeSent: what was acknowledged is there, with what was sent; what was not is there once at most; nothing else is.
func (m *massacre) judgeSent(jobs map[ledger.JobID]*life) {
	m.Helper()
	ids := make(map[string][]string)
	for id, l := range jobs {
		ids[l.payload] = append(ids[l.payload], string(id))
		if _, sent := m.sent[l.payload]; !sent {
			m.Errorf("nobody sent job %s with %q", id, l.payload)
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

// judgeOwned: the claims and ends that a script was told of.
func (m *massacre) judgeOwned(jobs map[ledger.JobID]*life) {
	m.Helper()
	for token, id := range m.claims {
		if l := jobs[ledger.JobID(id)]; l == nil || l.claims[token] == 0 {
			m.Errorf("the claim %s of job %s was acknowledged and is not there", token, id)
		} else if result, ended := m.ends[token]; ended && (l.winner != token || l.result != result) {
			m.Errorf("job %s: the end by %s was acknowledged; the ledger has %s, %q", id, token, l.winner, l.result)
		}
	}
	m.Logf("%d claims and %d ends by hand", len(m.claims), len(m.ends))
}

// judgeRuns: each command belongs to a claim, and no claim ran one twice.
func (m *massacre) judgeRuns(jobs map[ledger.JobID]*life) {
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
		if l := jobs[ledger.JobID(id)]; l == nil || !l.hasAttempt(attempt) {
			m.Errorf("attempt %s of job %s ran, and there is no such claim", attempt, id)
		}
	}
	for id, l := range jobs {
		if line := fmt.Sprintf("%s %d\n", id, l.claims[l.winner]); !ran[line] && m.ends[l.winner] == "" {
			if l.result != "of "+l.winner { // the script that sent it died before it was told
				m.Errorf("job %s succeeded by %s, and nothing ran", id, l.winner)
			}
		}
	}
}

func (l *life) hasAttempt(text string) bool {
	for _, n := range l.claims {
		if fmt.Sprint(n) == text {
			return true
		}
	}
	return false
}
