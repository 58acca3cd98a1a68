package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"jobledger/cmd/jobledger/internal/cli"
)

// soakQueues are the queues of the load. The ghost has its own, from which no other worker claims.
var soakQueues = []string{"a", "b"}

const (
	ghostQueue  = "ghost"
	soakBacklog = 20 // producers pause while so many jobs are ready
)

// ack is an acknowledged command, and the event that must record it.
type ack struct {
	Kind   string // of the event
	Job    string // "": of a queue
	Name   string // of an enqueued job
	Token  string // of a claim that ended
	Reason string // that an operator gave
}

// acknowledge records it here and, for debugging, in a file.
func (s *soak) acknowledge(acks ...ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks = append(s.acks, acks...)
	var text bytes.Buffer
	for _, a := range acks {
		_ = json.NewEncoder(&text).Encode(a)
	}
	if err := appendFile(filepath.Join(s.notes, "acknowledged"), text.Bytes()); err != nil {
		s.wrong = append(s.wrong, err.Error())
	}
}

func appendFile(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// someAck returns an acknowledged job, or "".
func (s *soak) someAck(dice *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 10 {
		if len(s.acks) == 0 {
			break
		}
		from := max(0, len(s.acks)-200) // mostly recent jobs
		if a := s.acks[from+dice.IntN(len(s.acks)-from)]; a.Kind == "enqueued" {
			return a.Job
		}
	}
	return ""
}

// loops returns all users of the ledger under load besides the steady worker.
func (s *soak) loops() []func() {
	loops := []func(){s.sweep, s.operate, s.pauseQueues, s.backUp, s.checkAndRead, s.ownWorker, s.shellWorker,
		s.produceWithoutKeys}
	if s.archives {
		loops = append(loops, s.archive)
	}
	if s.second != "" {
		loops = append(loops, s.produceAsSecond, s.watchRoot)
	}
	for n := range 2 {
		loops = append(loops, func() { s.produce(n) })
	}
	for n := range 3 {
		loops = append(loops, func() { s.work(n) })
	}
	return append(loops, s.loopsOverHTTP()...)
}

// behaviours are what jobs do, and how often. The number is a maximum in milliseconds, or an exit code.
var behaviours = []struct {
	name   string
	upTo   int
	weight int
}{
	{"ok", 20, 60}, {"ok", 600, 12}, {"exit", 9, 5}, {"exit", 120, 3}, {"later", 0, 3}, {"crash", 20,
		2}, {"flood", 0, 3}, {"deaf", 1500, 3},
	{"orphan", 0, 3}, {"long", 10_000, 3},
}

// newJob returns a job with this name. Its payload holds the name, the behaviour, and padding.
func (s *soak) newJob(name string, dice *rand.Rand) (payload string) {
	total := 0
	for _, b := range behaviours {
		total += b.weight
	}
	n := dice.IntN(total)
	for _, b := range behaviours {
		if n -= b.weight; n < 0 {
			if b.name == "long" && s.short {
				b.upTo = 600
			}
			payload = fmt.Sprintf("%s %s %d ", name, b.name, dice.IntN(b.upTo+1))
			break
		}
	}
	if dice.IntN(10) == 0 {
		payload += strings.Repeat("x", dice.IntN(20_000))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[name] = sha256.Sum256([]byte(payload))
	return payload
}

// produce enqueues jobs with keys, and sends each again until it is acknowledged, which is always safe.
func (s *soak) produce(n int, way ...string) {
	dice := s.dice("producer", n)
	for batch := 0; s.underLoad(); batch++ {
		var lines strings.Builder
		var names []string
		for i := range 1 + dice.IntN(8) {
			name := fmt.Sprintf("p%d-%d-%d", n, batch, i)
			names = append(names, name)
			fmt.Fprintf(&lines, `{"queue":%q,"key":%q,"payload":%q,"max_attempts":3,"priority":%d}`+"\n",
				soakQueues[dice.IntN(len(soakQueues))], name, s.newJob(name, dice), dice.IntN(3))
		}
		ids := make([]string, len(names))
		for again := true; again && s.underLoad(); {
			words := append([]string{"enqueue", "-q", "a", "--jsonl", "-"}, way...)
			out, code := s.do("producer", lines.String(), words)
			// what is printed is durable, even if the program is killed afterwards
			for i, id := range strings.Fields(out) {
				switch {
				case i >= len(ids) || len(id) != ulid.EncodedSize || ids[i] != "" && ids[i] != id:
					s.faulty("the ids of %q were %q, and are %q", names, ids, out)
				case ids[i] == "":
					ids[i] = id
					s.acknowledge(ack{Kind: "enqueued", Job: id, Name: names[i]})
				}
			}
			if again = code != 0; again {
				s.pause(50 * time.Millisecond)
			} else if slices.Contains(ids, "") {
				s.faulty("%q enqueued, and the ids are %q", names, out)
			}
		}
		s.awaitRoom(dice)
	}
}

// produceWithoutKeys enqueues each job once. A job that was not acknowledged is stored at most once.
func (s *soak) produceWithoutKeys() {
	dice := s.dice("producer without keys", 0)
	for n := 0; s.underLoad(); n++ {
		name := "u-" + strconv.Itoa(n)
		if id, code := s.do("producer", s.newJob(name, dice),
			[]string{"enqueue", "-q", "b", "--max-attempts", "3", "-"}); code == 0 {
			s.acknowledge(ack{Kind: "enqueued", Job: id, Name: name})
		}
		s.awaitRoom(dice)
	}
}

func (s *soak) awaitRoom(dice *rand.Rand) {
	s.pause(time.Duration(dice.IntN(100)) * time.Millisecond)
	for s.underLoad() && s.ready.Load() > soakBacklog {
		s.pause(50 * time.Millisecond)
	}
}

func (s *soak) startWorker(name string, slots int, way ...string) *soakProcess {
	words := append([]string{"work", "-q", "a", "-q", "b", "-j", strconv.Itoa(slots), "--worker", name,
		"--lease", soakLease.String(), "--kill-after", "300ms", "--log-limit", "8192"}, way...)
	return s.begin(strings.TrimRight(name, "0123456789"), nil, nil, append(words, "--", "soak-job")...)
}

// work keeps a worker running, as a service manager does.
func (s *soak) work(n int, way ...string) {
	for s.underLoad() {
		s.attend(s.startWorker("worker"+strconv.Itoa(n), 2, way...))
		s.pause(50 * time.Millisecond)
	}
}

// sweep keeps a sweeper running.
func (s *soak) sweep() {
	for s.underLoad() {
		s.attend(s.begin("sweeper", nil, nil, "sweep", "--every", "300ms"))
		s.pause(50 * time.Millisecond)
	}
}

// attend waits for the end of a process that would not end before the load does.
func (s *soak) attend(p *soakProcess) {
	if p == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-s.under.Done():
			s.terminate(p)
		case <-ended:
		}
	}()
	code := s.end(p)
	close(ended)
	switch {
	case !s.underLoad():
	case code == cli.ExitBusy: // it could not start
		s.counted("restarts of "+p.role, 1)
	case code == 0:
		s.faulty("a %s ended without a signal: %s", p.role, p.stderr.String())
	}
}

// terminate asks p to end, and kills it if that does not help. A process that has just started may not handle
// the signal yet, and dies.
func (s *soak) terminate(p *soakProcess) {
	s.mu.Lock()
	now := time.Now()
	if !p.frozen.IsZero() {
		now = p.frozen
	}
	p.killed = p.killed || now.Sub(p.began) < 10*time.Second
	s.mu.Unlock()
	_ = p.Process.Signal(syscall.SIGTERM)
	time.AfterFunc(time.Minute, func() {
		if p.Process.Kill() == nil {
			s.faulty("%s %q did not end within a minute of TERM: %s", p.role, p.Args[1:], p.stderr.String())
		}
	})
}

func (s *soak) endWorker(p *soakProcess) {
	s.terminate(p)
	if code := s.end(p); code != 0 {
		s.faulty("worker %q ended with %d: %s", p.Args[1:], code, p.stderr.String())
	}
}

// operate cancels, retries and reschedules jobs.
func (s *soak) operate() {
	dice := s.dice("operator", 0)
	for n := 0; s.underLoad(); n++ {
		s.pause(time.Duration(20+dice.IntN(200)) * time.Millisecond)
		job := s.someAck(dice)
		if job == "" {
			continue
		}
		reason := "op-" + strconv.Itoa(n)
		switch dice.IntN(4) {
		case 0:
			s.cancelled(job)
			if _, code := s.do("operator", "", []string{"cancel", job, "--reason", reason},
				cli.ExitConflict); code == 0 {
				s.acknowledge(ack{Kind: "cancelled", Job: job, Reason: reason})
			}
			s.cancelled(job)
		case 1:
			if _, code := s.do("operator", "", []string{"reschedule", job, "--delay", "0s", "--reason", reason},
				cli.ExitConflict); code == 0 {
				s.acknowledge(ack{Kind: "rescheduled", Job: job, Reason: reason})
			}
		default:
			// The command of a cancelled job ends at the next heartbeat of its worker. Only the operator knows whether
			// the job may run again before that.
			if s.cancelledLately(job) {
				continue
			}
			if _, code := s.do("operator", "", []string{"retry", job, "--succeeded", "--reason", reason},
				cli.ExitConflict); code == 0 {
				s.acknowledge(ack{Kind: "retried", Job: job, Reason: reason})
			}
		}
	}
}

func (s *soak) cancelled(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut[job] = time.Now()
}

func (s *soak) cancelledLately(job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.cut[job]
	return ok && time.Since(at) < 3*soakLease
}

// pauseQueues pauses a queue now and then.
func (s *soak) pauseQueues() {
	dice := s.dice("pauses", 0)
	for n := 0; s.underLoad(); n++ {
		s.pause(time.Duration(200+dice.IntN(2000)) * time.Millisecond)
		for _, word := range []string{"pause", "resume"} {
			reason := fmt.Sprintf("%s-%d", word, n)
			p := s.begin("operator", nil, nil, word, "-q", "b", "--reason", reason)
			if code := s.end(p); code == 0 && !strings.Contains(p.stderr.String(), "already") &&
				!strings.Contains(p.stderr.String(), "not paused") {
				s.acknowledge(ack{Kind: "queue_" + word + "d", Reason: reason})
			}
			s.pause(200 * time.Millisecond)
		}
	}
}

// backUp makes copies and checks them. Like checkAndRead it rests for longer than it has worked, because the
// ledger grows.
func (s *soak) backUp() {
	for n := 0; s.underLoad(); n++ {
		began := time.Now()
		name := filepath.Join(s.notes, fmt.Sprintf("backup-%d.db", n))
		if _, code := s.do("backup", "", []string{"backup", name}); code == 0 {
			if _, code := s.do("reader", "", []string{"verify", "--db", name}); code == 0 {
				s.counted("backups", 1)
			}
		}
		// left by a backup that was killed
		for _, pattern := range []string{name + "*", filepath.Join(s.notes, ".backup-*")} {
			left, _ := filepath.Glob(pattern)
			for _, file := range left {
				_ = os.RemoveAll(file)
			}
		}
		s.pause(500*time.Millisecond + 4*time.Since(began))
	}
}

// checkAndRead verifies the ledger in use, and reads from it.
func (s *soak) checkAndRead() {
	dice := s.dice("reader", 0)
	for s.underLoad() {
		began := time.Now()
		if out, code := s.do("reader", "", []string{"verify", "--json"}); code == 0 {
			s.counted("checks", 1)
			if !strings.Contains(out, `"ok":true`) {
				s.faulty("verify: %s", out)
			}
		}
		s.do("reader", "", [][]string{{"attempts", "--from", "-1m"}, {"list", "--json"}, {"workers"}, {"events",
			"--limit", "100"}}[dice.IntN(4)], cli.ExitNothing)
		s.pause(4 * time.Since(began))
	}
}

// claimed is the output of "claim --json".
type claimed struct {
	ID      string
	Attempt int
	Token   string `json:"lease_token"`
}

// ownWorker is a program that claims with commands, and is sometimes too slow.
func (s *soak) ownWorker() {
	dice := s.dice("own worker", 0)
	for ; s.underLoad(); s.pause(20 * time.Millisecond) {
		out, code := s.do("primitive", "", []string{"claim", "-q", "a", "--worker", "own", "--lease",
			soakLease.String(), "--json"}, cli.ExitNothing)
		var c claimed
		if code != 0 || json.Unmarshal([]byte(out), &c) != nil {
			continue
		}
		if dice.IntN(5) == 0 {
			s.pause(2 * soakLease)
		}
		s.do("primitive", "", []string{"heartbeat", c.ID, "--token", c.Token, "--progress", "0.5"},
			cli.ExitLeaseLost, cli.ExitCancelled, cli.ExitConflict)
		words := []string{"succeed", c.ID, "--token", c.Token, "--result", "own"}
		for again := true; again; {
			_, code := s.do("primitive", "", words, cli.ExitLeaseLost, cli.ExitCancelled, cli.ExitConflict)
			if again = (code == -1 || code == cli.ExitBusy) && s.underLoad(); code == 0 {
				s.acknowledge(ack{Kind: "succeeded", Job: c.ID, Token: c.Token})
			}
		}
	}
}

// shellWorker is the loop of the README.
func (s *soak) shellWorker() {
	for ; s.underLoad(); s.pause(20 * time.Millisecond) {
		s.do("shell", "", []string{"sh", "-c",
			fmt.Sprintf(
				`eval "$(jobledger claim -q a --worker shell --lease %v --sh)" && `+
					`exec jobledger exec --kill-after 300ms -- soak-job`, soakLease)},
			cli.ExitNothing, cli.ExitLeaseLost, cli.ExitCancelled, cli.ExitConflict, cli.ExitNotSucceeded)
	}
}

// claimAsGhost claims a job and sends nothing until the end.
func (s *soak) claimAsGhost() {
	s.run("enqueue", "-q", ghostQueue, "--key", ghostQueue, s.newJob(ghostQueue, s.dice("ghost", 0)))
	if err := json.Unmarshal([]byte(s.run("claim", "-q", ghostQueue, "--worker", "ghost", "--lease",
		soakLease.String(), "--json")), &s.ghost); err != nil {
		s.Fatal(err)
	}
}

// ghostReturns waits until another worker has the job of the ghost: the ghost's write is refused, and the
// other worker's is accepted.
func (s *soak) ghostReturns() {
	s.run("reschedule", s.ghost.ID, "--delay", "0s")
	var other claimed
	if err := json.Unmarshal([]byte(s.run("claim", "-q", ghostQueue, "--worker", "own", "--json")),
		&other); err != nil {
		s.Fatal(err)
	}
	if _, code := s.do("primitive", "", []string{"succeed", s.ghost.ID, "--token", s.ghost.Token, "--result",
		"boo"}, cli.ExitLeaseLost); code != cli.ExitLeaseLost {
		s.faulty("the ghost's result was answered with %d, want %d", code, cli.ExitLeaseLost)
	}
	if _, code := s.do("primitive", "", []string{"succeed", other.ID, "--token", other.Token, "--result", "own"},
		cli.ExitConflict); code != 0 {
		s.faulty("the result of the one that has the ghost's job was answered with %d", code)
	}
	s.acknowledge(ack{Kind: "succeeded", Job: other.ID, Token: other.Token})
}

// soakQueue is a line of "status --json".
type soakQueue struct {
	Queue                           string
	Queued, Ready, Claimed, Running int64
}

func (s *soak) status() (queues []soakQueue, ok bool) {
	out, code := s.do("reader", "", []string{"status", "--json"})
	if code != 0 {
		return nil, false
	}
	for line := range strings.Lines(out) {
		var q soakQueue
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			s.faulty("status: %v: %s", err, line)
			return nil, false
		}
		queues = append(queues, q)
	}
	return queues, true
}

// openJobs returns the ids of the jobs that have not ended.
func (s *soak) openJobs() (ids []string) {
	out, _ := s.do("reader", "", []string{"list", "--state", "queued", "--state", "claimed", "--state",
		"running", "--limit", "0", "--json"}, cli.ExitNothing)
	for line := range strings.Lines(out) {
		var j struct{ ID string }
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			s.faulty("list: %v: %s", err, line)
			return nil
		}
		ids = append(ids, j.ID)
	}
	return ids
}

// soakJob is the command of a job. It does what the payload says, and records when it begins and ends; if it
// cannot record that, it does nothing. It holds a lock of its job while it runs. If the lock is taken, the
// job runs twice at once.
func soakJob() {
	payload, err := io.ReadAll(os.Stdin)
	job, attempt := os.Getenv("JOBLEDGER_JOB"), os.Getenv("JOBLEDGER_ATTEMPT")
	notes := os.Getenv(soakNotes)
	lock, err2 := os.OpenFile(filepath.Join(notes, "locks", job), os.O_CREATE|os.O_RDWR, 0o600)
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(71)
	}
	note := func(what string, code int) {
		if err := appendFile(filepath.Join(notes, "ran"), fmt.Appendf(nil, "%s %s %s %s %d at %s\n", what, job,
			attempt, os.Getenv("JOBLEDGER_TOKEN"), code, time.Now().UTC().Format("15:04:05.000"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(72)
		}
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		note("twice", 0)
		os.Exit(73)
	}
	note("begin", 0)
	code := behave(string(payload))
	note("end", code)
	if code == 0 {
		fmt.Println("done", job, attempt)
	}
	os.Exit(code)
}

// behave does what a payload says, and returns the exit code.
func behave(payload string) (code int) {
	fields := strings.Fields(payload)
	if len(fields) < 3 {
		return 74
	}
	number, err := strconv.Atoi(fields[2])
	if err != nil {
		return 74
	}
	took := time.Duration(number) * time.Millisecond
	switch fields[1] {
	case "exit":
		return number
	case "later":
		return 75
	case "crash":
		time.Sleep(took) // the job of the soak takes this long
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "flood":
		for range 20 {
			fmt.Println(strings.Repeat("out ", 2500))
			fmt.Fprintln(os.Stderr, strings.Repeat("err ", 2500))
		}
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(took) // the job of the soak takes this long
	case "orphan": // what it leaves running must be killed
		left := exec.Command("sleep", "600")
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := left.Start(); err != nil {
			return 74
		}
	default:
		time.Sleep(took) // the job of the soak takes this long
	}
	return 0
}
