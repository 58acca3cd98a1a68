package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

const (
	soakFilesMost  = 64        // open in an idle worker; most belong to its connections to the ledger
	soakMemoryMost = 512 << 20 // bytes of such a worker; normal are 40 MiB
	soakWALMost    = 64 << 20  // bytes of a -wal file; one that is larger was not reused
)

// recorded is the content of the ledger, read from its export without the program's own code.
type recorded struct {
	jobs    map[string]*recordedJob
	reasons map[string]bool // "kind reason" and "kind job reason" of what operators did
	kinds   map[string]int  // events
	events  int64
	commits int64 // distinct times of events: a commit has one
	states  map[string]int
}

type recordedJob struct {
	name, state string
	payload     digest
	flood       bool
	gone        bool // from the ledger, and its payload and results with it
	claims      map[int]*recordedClaim
	kinds       map[string]bool
}

type recordedClaim struct {
	worker, token, outcome, result string
}

// exported is a line of "export".
type exported struct {
	Pos             int64
	Seq             *int64
	Job, Kind, At   string
	Worker, Token   string
	Attempt         int
	ToState         string `json:"to_state"`
	Payload, Result string
	Data            struct{ Key, Reason string }
}

// read reads the whole history.
func (s *soak) read() (r recorded, err error) {
	r = recorded{jobs: make(map[string]*recordedJob), reasons: make(map[string]bool),
		kinds: make(map[string]int), states: make(map[string]int)}
	cmd := s.command("export")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	lines := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	at := ""
	for lines.More() {
		var e exported
		if err := lines.Decode(&e); err != nil {
			return r, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
		}
		if r.events++; e.Pos != r.events {
			s.faulty("event %d has pos %d", r.events, e.Pos)
		}
		if e.At < at {
			s.faulty("event %d is of %s, before that of the one before it, %s", e.Pos, e.At, at)
		}
		if e.At != at {
			r.commits, at = r.commits+1, e.At
		}
		r.kinds[e.Kind]++
		r.reasons[e.Kind+" "+e.Job+" "+e.Data.Reason] = true
		if e.Job != "" && e.Seq != nil {
			s.follow(r.jobs, e)
		}
	}
	for _, j := range r.jobs {
		r.states[j.state]++
	}
	return r, cmd.Wait()
}

// follow applies an event that changes a job.
func (s *soak) follow(jobs map[string]*recordedJob, e exported) {
	j := jobs[e.Job]
	if j == nil {
		j = &recordedJob{claims: make(map[int]*recordedClaim), kinds: make(map[string]bool)}
		j.payload, j.flood = sha256.Sum256([]byte(e.Payload)), strings.Contains(e.Payload, " flood ")
		j.name, _, _ = strings.Cut(e.Payload, " ")
		if j.gone = s.archives && e.Payload == ""; j.gone {
			j.name = cmp.Or(e.Data.Key, s.named[e.Job], "unknown "+e.Job)
			j.payload = s.sent[j.name]
		}
		jobs[e.Job] = j
		if e.Kind != "enqueued" || e.Data.Key != "" && e.Data.Key != j.name {
			s.faulty("job %s begins with %s, key %q, payload %.50q", e.Job, e.Kind, e.Data.Key, e.Payload)
		}
	}
	j.state, j.kinds[e.Kind] = e.ToState, true
	if e.Kind == "claimed" {
		if j.claims[e.Attempt] != nil {
			s.faulty("job %s was claimed twice for attempt %d", e.Job, e.Attempt)
		}
		j.claims[e.Attempt] = &recordedClaim{worker: e.Worker, token: e.Token}
	} else if c := j.claims[e.Attempt]; c != nil && e.Kind != "heartbeat" && e.Worker != "" {
		if c.outcome != "" || e.Token != c.token {
			s.faulty("job %s, attempt %d: %s with token %s after %q; its token is %s", e.Job, e.Attempt, e.Kind,
				e.Token, c.outcome, c.token)
		}
		if e.Kind != "taken_over" { // another process continues the same claim
			c.outcome, c.result = e.Kind, e.Result
		}
	}
}

// check is the oracle: it compares the acknowledged commands, the records of the jobs' commands, and the
// ledger. It returns all violations.
func (s *soak) check() (wrong []string) {
	s.named = make(map[string]string)
	for _, a := range s.acks {
		if a.Name != "" {
			s.named[a.Job] = a.Name
		}
	}
	s.archiveAll()
	r, err := s.read()
	if err != nil {
		s.faulty("export: %v", err)
	}
	s.history = r
	s.checkArchive()
	if out, code := s.do("reader", "", []string{"verify", "--json"}); code != 0 ||
		!strings.Contains(out, `"ok":true`) {
		s.faulty("verify ended with %d: %s", code, out)
	}
	s.checkPages()
	s.checkAcknowledged()
	s.checkJobs()
	s.checkRuns()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

// checkPages runs SQLite's checks while no process has the file open, and looks for leftover files next to
// it.
func (s *soak) checkPages() {
	for _, suffix := range []string{"-wal", "-shm"} {
		if info, err := os.Stat(s.path("jobledger.db" + suffix)); !errors.Is(err, fs.ErrNotExist) {
			s.faulty("%s is still there: %v, %v", info.Name(), info.Size(), err)
		}
	}
	db, err := sql.Open("sqlite", s.path("jobledger.db"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	var text string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&text); err != nil || text != "ok" {
		s.faulty("integrity_check: %s, %v", text, err)
	}
	if s.wal.Load() > soakWALMost {
		s.faulty("the -wal file grew to %s", words.ByteSize(s.wal.Load()))
	}
	if s.files > soakFilesMost || s.memory > soakMemoryMost {
		s.faulty("the steady worker had %d files open at rest, and %s of memory", s.files,
			words.ByteSize(s.memory))
	}
}

// checkAcknowledged looks for everything that was acknowledged.
func (s *soak) checkAcknowledged() {
	for _, a := range s.acks {
		j := s.history.jobs[a.Job]
		found := false
		switch a.Kind {
		case "enqueued":
			found = j != nil && j.name == a.Name && j.payload == s.sent[a.Name]
		case "succeeded":
			for _, c := range j.ended("succeeded") {
				found = found || c.token == a.Token && (c.result == "own" || j.gone)
			}
		case "cancelled": // a second cancel adds no event
			found = j != nil && j.kinds["cancelled"]
		default:
			found = s.history.reasons[a.Kind+" "+a.Job+" "+a.Reason]
		}
		if !found {
			s.counted("lost", 1)
			s.faulty("acknowledged and lost: %+v", a)
		}
	}
}

// ended returns the claims of j that ended in this way.
func (j *recordedJob) ended(outcome string) (claims []*recordedClaim) {
	if j == nil {
		return nil
	}
	for _, c := range j.claims {
		if c.outcome == outcome {
			claims = append(claims, c)
		}
	}
	return claims
}

// unnamed reports whether nothing says what a job was called: its enqueuing was not acknowledged, it had no
// key, and its payload has left.
func (j *recordedJob) unnamed() bool { return j.gone && strings.HasPrefix(j.name, "unknown ") }

// checkJobs checks every job: it was sent, once, as it is stored, and has ended.
func (s *soak) checkJobs() {
	ids := make(map[string]string)
	for id, j := range s.history.jobs {
		if payload, sent := s.sent[j.name]; !j.unnamed() && (!sent || payload != j.payload) {
			s.faulty("job %s, called %s, was never sent so", id, j.name)
		}
		if other := ids[j.name]; other != "" {
			s.faulty("jobs %s and %s are both %s", id, other, j.name)
		}
		ids[j.name] = id
		if !slices.Contains([]string{"succeeded", "failed", "cancelled"}, j.state) {
			s.faulty("job %s is %s in the end", id, j.state)
		}
		for attempt, c := range j.claims {
			if c.outcome == "" {
				s.faulty("attempt %d of job %s, by %s, has no end", attempt, id, c.worker)
			}
		}
	}
}

// checkRuns compares what the commands recorded with the ledger.
func (s *soak) checkRuns() {
	text, err := os.ReadFile(filepath.Join(s.notes, "ran"))
	if err != nil {
		s.faulty("%v", err)
	}
	type run struct {
		job     string
		attempt int
	}
	begun, ended := make(map[run]bool), make(map[run]int)
	for line := range strings.Lines(string(text)) {
		var what, token, at string
		var of run
		var code int
		if _, err := fmt.Sscanf(line, "%s %s %d %s %d at %s", &what, &of.job, &of.attempt, &token, &code,
			&at); err != nil {
			s.faulty("note %q: %v", line, err)
			continue
		}
		j := s.history.jobs[of.job]
		if j == nil || j.claims[of.attempt] == nil || j.claims[of.attempt].token != token {
			s.faulty("a command ran without a claim: %s", line)
		}
		switch what {
		case "begin":
			if begun[of] {
				s.faulty("one claim, and two runs: %s", line)
			}
			begun[of] = true
			s.counted("runs", 1)
		case "end":
			ended[of] = code
		case "twice":
			s.counted("twice", 1)
			s.faulty("the job ran twice at once: %s", line)
		}
	}
	for id, j := range s.history.jobs {
		for attempt, c := range j.claims {
			if c.outcome != "succeeded" || c.worker == "own" {
				continue
			}
			code, ok := ended[run{id, attempt}]
			if !ok || code != 0 {
				s.faulty("attempt %d of job %s succeeded, says the ledger, but its command ended with %d, %t", attempt,
					id, code, ok)
			}
			want := fmt.Sprintf("done %s %d\n", id, attempt)
			if !strings.HasSuffix(c.result, want) && !j.flood && !j.gone {
				s.faulty("attempt %d of job %s has the result %.100q, want %q", attempt, id, c.result, want)
			}
		}
	}
}

// holds returns how many files a process has open, and how much memory it uses.
func (s *soak) holds(p *soakProcess) (files int, memory int64) {
	folder := fmt.Sprintf("/proc/%d", p.Process.Pid)
	names, err1 := os.ReadDir(folder + "/fd")
	text, err2 := os.ReadFile(folder + "/statm")
	var size, resident int64
	_, err3 := fmt.Sscan(string(text), &size, &resident)
	if err := errors.Join(err1, err2, err3); err != nil {
		s.faulty("%v", err)
	}
	return len(names), resident * int64(os.Getpagesize())
}

// sum adds up the counts whose names begin with prefix.
func (s *soak) sum(prefix string) (n int, parts string) {
	var names []string
	for name := range s.count {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			n += s.count[name]
			names = append(names, fmt.Sprintf("%s %d", rest, s.count[name]))
		}
	}
	slices.Sort(names)
	return n, strings.Join(names, ", ")
}

// table returns the statistics for the README.
func (s *soak) table() string {
	var b strings.Builder
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", name, fmt.Sprintf(format, args...))
	}
	kills, killed := s.sum("kills of ")
	stops, stopped := s.sum("stops of ")
	r := s.history
	b.WriteString("| a soak of | " + s.lasted.Round(time.Second).String() + " |\n|---|---|\n")
	row("commits, events", "%d, %d", r.commits, r.events)
	row("jobs", "%d: %d succeeded, %d failed, %d cancelled", len(r.jobs), r.states["succeeded"],
		r.states["failed"], r.states["cancelled"])
	row("claims, runs of a command", "%d, %d", r.kinds["claimed"], s.count["runs"])
	row("SIGKILL", "%d: %s", kills, killed)
	row("SIGSTOP, then SIGCONT", "%d: %s", stops, stopped)
	row("full disk, limit to the size of files", "%d, %d", s.count["times the disk was full"],
		s.count["limits to the size of files"])
	row("second names of the file, commands refused because of one", "%d, %d", s.count["second names"],
		s.count["refused because of a second name"])
	row("swapped folders of logs, idle connections", "%d, %d", s.count["swapped folders of logs"],
		s.count["idle connections"])
	row("commands of a second user, of which one became root", "%d", s.count["commands of a second user"])
	row("commands asked to try again", "%d, %d of them since the disk was full", s.count["busy"],
		s.count["refused because the disk was full"])
	row("starts that a full disk put off", "%d", s.count["restarts of worker"]+s.count["restarts of sweeper"])
	row("refused writes", "%d", r.kinds["refused"])
	row("reclaims", "%d", r.kinds["reclaimed"])
	row("copies made and verified, checks of the ledger in use", "%d, %d", s.count["backups"], s.count["checks"])
	row("largest -wal file", "%.1f MiB", float64(s.wal.Load())/(1<<20))
	row("the worker that was there throughout, at rest", "%d files open, %d MiB", s.files, s.memory>>20)
	s.archiveRows(row)
	row("acknowledged, **lost**", "%d, **%d**", len(s.acks), s.count["lost"])
	row("**run twice at once**", "**%d**", s.count["twice"])
	return b.String()
}

// wantFaults makes sure that there were enough faults.
func (s *soak) wantFaults() {
	kills, _ := s.sum("kills of ")
	stops, _ := s.sum("stops of ")
	for what, n := range map[string]int{"kills": kills, "stops": stops, "reclaims": s.history.kinds["reclaimed"],
		"refused writes":      s.history.kinds["refused"],
		"jobs that succeeded": s.history.states["succeeded"], "runs": s.count["runs"],
		"acknowledged commands": len(s.acks)} {
		if n == 0 {
			s.Errorf("no %s: that was not a soak", what)
		}
	}
	for _, what := range []string{"second names", "idle connections"} {
		if s.edges && s.count[what] == 0 {
			s.Errorf("no %s: that was not a soak", what)
		}
	}
	if s.disk > 0 && s.count["times the disk was full"] == 0 && !testing.Short() {
		s.Error("the disk was never full")
	}
}

// The oracle finds violations: each case is one small fault in an otherwise correct history.
func TestSoakOracleFindsFaults(t *testing.T) {
	t.Parallel()
	right := newSoak(t, 1)
	right.run("init")
	for i := range 3 {
		name := fmt.Sprint("job-", i)
		id := right.run("enqueue", "-q", "a", "--key", name, name+" ok 0")
		right.sent[name] = sha256.Sum256([]byte(name + " ok 0"))
		right.acknowledge(ack{Kind: "enqueued", Job: id, Name: name})
	}
	right.do("worker", "", []string{"work", "-q", "a", "--drain", "--worker", "steady", "--", "soak-job"})
	if wrong := right.copied(t).check(); len(wrong) > 0 {
		t.Fatalf("a history without faults: %q", wrong)
	}
	first := right.acks[0].Job
	tests := map[string]struct {
		spoil func(s *soak)
		want  string
	}{
		"a job is lost": {func(s *soak) { s.acks[0].Job = "01KKQGAZ430000000000000000" },
			"acknowledged and lost"},
		"a payload is lost": {func(s *soak) { s.acks[0].Name, s.acks[1].Name = s.acks[1].Name, s.acks[0].Name },
			"acknowledged and lost"},
		"a cancel is lost": {func(s *soak) { s.acks = append(s.acks, ack{Kind: "cancelled", Job: first}) },
			"acknowledged and lost"},
		"a retry is lost": {func(s *soak) {
			s.acks = append(s.acks,
				ack{Kind: "retried", Job: first, Reason: "op-1"})
		}, "acknowledged and lost"},
		"a result is lost": {func(s *soak) {
			s.acks = append(s.acks,
				ack{Kind: "succeeded", Job: first, Token: "x"})
		}, "acknowledged and lost"},
		"a job from nowhere": {func(s *soak) { delete(s.sent, "job-0") }, "was never sent so"},
		"a payload changed":  {func(s *soak) { s.sent["job-0"] = digest{} }, "was never sent so"},
		"a job twice":        {func(s *soak) { s.run("enqueue", "-q", "b", "job-0 ok 0") }, "are both job-0"},
		"a job left":         {func(s *soak) { s.run("retry", "--succeeded", first) }, "is queued in the end"},
		"a claim left": {func(s *soak) { s.run("retry", "--succeeded", first); s.run("claim", "-q", "a") },
			"has no end"},
		"success without run": {func(s *soak) { s.respell("end "+first, "begin 01KKQGAZ430000000000000000") },
			"but its command ended with 0, false"},
		"success of failure": {func(s *soak) { s.respell("(end "+first+" 1 [0-9A-Z]+) 0", "$1 7") },
			"but its command ended with 7, true"},
		"two runs of a claim": {func(s *soak) { s.respell("end "+first, "begin "+first) },
			"one claim, and two runs"},
		"a run without claim": {func(s *soak) { s.respell(first+" 1 ", first+" 2 ") },
			"a command ran without a claim"},
		"another's result": {func(s *soak) {
			s.run("retry", "--succeeded", first)
			c := s.claim("steady")
			s.run("succeed", c.ID, "--token", c.Token, "--result", "done by another")
		}, `has the result "done by another"`},
		"a row changed": {func(s *soak) {
			s.sql(`UPDATE jobs SET attempt = 7 WHERE id = (SELECT id FROM jobs LIMIT 1)`)
		}, "verify ended with 8"},
		"an event changed": {func(s *soak) {
			s.sql(`DROP TRIGGER events_no_update; UPDATE events SET attempt = 7 WHERE pos = 4`)
		}, "verify ended with 8"},
		"files left open":     {func(s *soak) { s.files = 1000 }, "had 1000 files open at rest"},
		"a -wal without end":  {func(s *soak) { s.wal.Store(1 << 30) }, "the -wal file grew to 1.0 GiB"},
		"a job twice at once": {(*soak).runTwice, "the job ran twice at once"},
		"a command that broke": {func(s *soak) { s.do("reader", "", []string{"show", "nothing"}) },
			`reader ["show" "nothing"] ended with exit status 2`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := right.copied(t)
			tt.spoil(s)
			if wrong := strings.Join(s.check(), "\n"); !strings.Contains(wrong, tt.want) {
				t.Errorf("found %q, want %q", wrong, tt.want)
			}
		})
	}
}

// copied returns another soak with the same history.
func (s *soak) copied(t *testing.T) *soak {
	t.Helper()
	c := newSoak(t, s.seed)
	if err := errors.Join(os.CopyFS(c.dir, os.DirFS(s.dir)), os.RemoveAll(c.notes),
		os.CopyFS(c.notes, os.DirFS(s.notes))); err != nil {
		t.Fatal(err)
	}
	c.sent, c.acks = maps.Clone(s.sent), slices.Clone(s.acks)
	return c
}

// respell changes what the commands recorded, once.
func (s *soak) respell(from, to string) {
	name, old := filepath.Join(s.notes, "ran"), regexp.MustCompile(from)
	text, err := os.ReadFile(name)
	if err != nil {
		s.Fatal(err)
	}
	at := old.FindIndex(text)
	changed := slices.Concat(text[:at[0]], old.ReplaceAll(text[at[0]:at[1]], []byte(to)), text[at[1]:])
	if err := os.WriteFile(name, changed, 0o600); err != nil {
		s.Fatal(err)
	}
}

// claim claims a job as a worker with this name.
func (s *soak) claim(worker string) (c claimed) {
	if err := json.Unmarshal([]byte(s.run("claim", "-q", "a", "--worker", worker, "--json")), &c); err != nil {
		s.Fatal(err)
	}
	return c
}

// sql changes the file without the program.
func (s *soak) sql(statements string) {
	db, err := sql.Open("sqlite", s.path("jobledger.db"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statements); err != nil {
		s.Fatal(err)
	}
}

// runTwice runs the command of the first job again, and a third time while that is running.
func (s *soak) runTwice() {
	run := func(payload string) *exec.Cmd {
		cmd := exec.Command("soak-job")
		cmd.Env = append(os.Environ(), soakNotes+"="+s.notes, "JOBLEDGER_JOB="+s.acks[0].Job, "JOBLEDGER_ATTEMPT=9",
			"JOBLEDGER_TOKEN=x")
		cmd.Stdin = strings.NewReader(payload)
		return cmd
	}
	first := run("x ok 600000")
	if err := first.Start(); err != nil {
		s.Fatal(err)
	}
	s.eventually("it runs", func() bool {
		text, _ := os.ReadFile(filepath.Join(s.notes, "ran"))
		return bytes.Contains(text, []byte("begin "+s.acks[0].Job+" 9 "))
	})
	_ = run("x ok 0").Run()
	_ = first.Process.Kill()
	_ = first.Wait()
}
