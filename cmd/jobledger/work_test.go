//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// site is a folder with a ledger that is used by real processes of the program.
type site struct {
	testing.TB
	dir string
	env []string // in addition to that of the test
}

func newSite(t testing.TB) site {
	t.Helper()
	s := site{TB: t, dir: t.TempDir()}
	s.run("init")
	return s
}

func (s site) command(words ...string) *exec.Cmd {
	cmd := exec.Command("jobledger", words...)
	cmd.Dir = s.dir
	env := s.env
	if words[0] == "serve" { // it remembers its port
		env = append([]string{"XDG_STATE_HOME=" + s.path("state")}, env...)
	}
	if len(env) > 0 {
		cmd.Env = append(os.Environ(), env...)
	}
	return cmd
}

// run runs a command that must succeed, and returns its output without the last line feed.
func (s site) run(words ...string) string {
	s.Helper()
	cmd := s.command(words...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("jobledger %s: %v\n%s%s", strings.Join(words, " "), err, out, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (s site) enqueue(words ...string) (job string) {
	s.Helper()
	return s.run(append([]string{"enqueue", "-q", "mail"}, words...)...)
}

func (s site) path(name string) string { return filepath.Join(s.dir, name) }

func (s site) touch(name string) {
	s.Helper()
	if err := os.WriteFile(s.path(name), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// events returns the kinds of a job's events, in order.
func (s site) events(job string) string {
	s.Helper()
	var kinds []string
	for line := range strings.Lines(s.run("history", job, "--json")) {
		_, rest, _ := strings.Cut(line, `"kind":"`)
		kind, _, _ := strings.Cut(rest, `"`)
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, " ")
}

// wantEvents compares the kinds of the job's events; without heartbeats, unless want has some: the first one
// is sent when a command has run for a moment, which on a slow machine is any command.
func (s site) wantEvents(job string, want string) {
	s.Helper()
	got := s.events(job)
	if !strings.Contains(want, "heartbeat") {
		got = unbeaten(got)
	}
	if got != want {
		s.Errorf("events of the job: got %q, want %q\n%s", got, want, s.run("history", job))
	}
}

// unbeaten omits the heartbeats of the claims, because their number depends on the machine.
func unbeaten(kinds string) string {
	return regexp.MustCompile(`\bclaimed( heartbeat)+`).ReplaceAllString(kinds, "claimed")
}

// beaten waits for the first heartbeat of a job whose command waits. After it the worker writes nothing for a
// third of the lease, so that a worker that is stopped then holds no lock.
func (s site) beaten(job string) {
	s.Helper()
	s.eventually("the first heartbeat is recorded", func() bool {
		return strings.Contains(s.events(job), "heartbeat")
	})
}

// expire waits for the end of the lease of the only job, and reclaims it.
func (s site) expire() {
	s.Helper()
	var job struct {
		End time.Time `json:"lease_expires_at"`
	}
	if err := json.Unmarshal([]byte(s.run("list", "--json")), &job); err != nil {
		s.Fatal(err)
	}
	s.eventually("the lease's end", func() bool {
		return time.Now().After(job.End) &&
			s.run("sweep", "--grace", "0s") == "1"
	})
}

// wantJob looks for a part of the job's JSON.
func (s site) wantJob(job string, parts ...string) {
	s.Helper()
	line, _, _ := strings.Cut(s.run("show", job, "--json"), "\n")
	for _, part := range parts {
		if !strings.Contains(line, part) {
			s.Errorf("the job lacks %s: %s", part, line)
		}
	}
}

// eventually polls until ok, for a minute at most. If ok starts a process, it pauses for longer than that
// takes, so that the poll leaves the processors to what it waits for.
func (s site) eventually(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; {
		began := time.Now()
		if ok() {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(min(max(5*time.Millisecond, 3*time.Since(began)), 200*time.Millisecond)) // between polls
	}
}

// pids waits until a file has n process ids, one on each line.
func (s site) pids(name string, n int) (pids []int) {
	s.Helper()
	s.eventually(fmt.Sprintf("%d process ids in %s", n, name), func() bool {
		text, _ := os.ReadFile(s.path(name))
		pids = nil
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && strings.HasSuffix(line, "\n") {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

// gone reports whether none of the processes exists, except as a zombie.
func gone(pids []int) bool {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !bytes.Contains(stat[bytes.LastIndexByte(stat, ')'):], []byte(") Z ")) {
			return false
		}
	}
	return true
}

// running is a worker that was started.
type running struct {
	site
	*exec.Cmd
	said   *lockedBuffer // its stderr
	exited chan struct{}
}

// lockedBuffer is a buffer that can be written to while it is read. The buffer is not embedded, because its
// other methods would bypass the lock.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// work starts "work -q mail" with these arguments.
func (s site) work(words ...string) *running {
	s.Helper()
	return s.start(s.command(append([]string{"work", "-q", "mail"}, words...)...))
}

func (s site) start(cmd *exec.Cmd) *running {
	s.Helper()
	p := &running{site: s, Cmd: cmd, said: new(lockedBuffer), exited: make(chan struct{})}
	if p.Stderr == nil {
		p.Stderr = p.said
	}
	p.WaitDelay = time.Second
	if err := p.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = p.Wait() // ProcessState has the exit code
		close(p.exited)
	}()
	s.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.exited
	})
	return p
}

func (p *running) signal(sig syscall.Signal) {
	p.Helper()
	if err := p.Process.Signal(sig); err != nil {
		p.Fatal(err)
	}
}

// wantSaid waits for a text on stderr.
func (p *running) wantSaid(text string) { p.Helper(); p.wantSaidTimes(text, 1) }

func (p *running) wantSaidTimes(text string, n int) {
	p.Helper()
	p.eventually("it says "+text, func() bool { return strings.Count(p.said.String(), text) >= n })
}

// wantExit waits until the worker ends, and requires this exit code.
func (p *running) wantExit(code int) {
	p.Helper()
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		p.Fatalf("the worker goes on; it said:\n%s", p.said)
	}
	if got := p.ProcessState.ExitCode(); got != code {
		p.Errorf("the worker ended with %v, want %d; it said:\n%s", p.ProcessState, code, p.said)
	}
}

// untilGo is a command that reports its start, and waits for a file.
const untilGo = `echo $$ >>begun; until [ -e go ]; do sleep 0.02; done; echo done`

// The heartbeats of a command go on after the signal, so no other worker gets its job.
func TestWorkFirstSignalLetsCommandsFinish(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			first := s.enqueue("x")
			w := s.work("--lease", "1s", "--", "sh", "-c", untilGo)
			s.pids("begun", 1)
			second := s.enqueue("y")
			w.signal(sig)
			w.wantSaid("no more jobs are claimed")
			s.eventually("the lease would be over", func() bool {
				return strings.Count(s.events(first), "heartbeat") > 4
			})
			if got := s.run("sweep", "--grace", "0s"); got != "0" {
				t.Errorf("%s jobs were taken back", got)
			}
			s.touch("go")
			w.wantExit(0)
			s.wantEvents(first, "enqueued claimed succeeded")
			s.wantEvents(second, "enqueued")
			s.run("verify")
		})
	}
}

func TestWorkSecondSignalReleasesJobs(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		flags   []string
		end     func(w *running, pid int)
	}{
		"TERM": {"trap 'echo asked >asked; exit 1' TERM; " + untilGo, nil, func(w *running, _ int) {
			w.signal(syscall.SIGTERM)
			w.wantSaid("no more jobs")
			w.signal(syscall.SIGTERM)
		}},
		"INT, and KILL for one that does not listen": {"trap '' TERM; echo >asked; " + untilGo,
			[]string{"--kill-after", "200ms"}, func(w *running, _ int) {
				w.signal(syscall.SIGINT)
				w.wantSaid("no more jobs")
				w.signal(syscall.SIGHUP)
			}},
		"time is over": {"trap 'echo asked >asked; exit 1' TERM; " + untilGo, []string{"--finish-within", "200ms"},
			func(w *running, _ int) {
				w.signal(syscall.SIGTERM)
				w.wantSaid("not done within 200ms")
			}},
		"a service manager signals all": {"echo >asked; " + untilGo, nil, func(w *running, pid int) {
			w.signal(syscall.SIGTERM)
			w.wantSaid("no more jobs")
			_ = syscall.Kill(-pid, syscall.SIGTERM)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			job := s.enqueue("x")
			w := s.work(append(test.flags, "--", "sh", "-c", test.command)...)
			pids := s.pids("begun", 1)
			test.end(w, pids[0])
			w.wantExit(0)
			if _, err := os.Stat(s.path("asked")); err != nil {
				t.Error("the command was not asked to end")
			}
			if !gone(pids) {
				t.Error("the command is still there")
			}
			s.wantEvents(job, "enqueued claimed released")
			s.wantJob(job, `"state":"queued"`, `"failures":0`)
			s.run("verify")
		})
	}
}

func TestWorkKilledCommandIsFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.enqueue("x")
	w := s.work("--once", "--", "sh", "-c", untilGo)
	_ = syscall.Kill(-s.pids("begun", 1)[0], syscall.SIGTERM)
	w.wantExit(0)
	s.wantJob(job, `"failures":1`, `"error_code":"signal"`)
	s.run("verify")
}

func TestWorkOutputReaderMayLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 {
		s.enqueue("x")
	}
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command("work", "-q", "mail", "--drain", "--", "sh", "-c", "head -c 200000 /dev/zero && echo end")
	cmd.Stdout = out
	w := s.start(cmd)
	_ = out.Close()
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	w.wantExit(0)
	w.wantSaid("3 succeeded")
	s.run("verify")
}

// A frozen worker loses its job: its command ends with the lease, and its writes after waking up change
// nothing. If its own clock shows that the lease has ended, it writes nothing, which depends on where it
// froze: see TestStallWorkerAtEachStep.
func TestWorkFrozenLosesJob(t *testing.T) {
	for name, finishes := range map[string]bool{"command goes on": false, "command finishes meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			job := s.enqueue("x")
			w := s.work("--worker", "A", "--lease", "6s", "--", "sh", "-c", "trap '' TERM; "+untilGo)
			pids := s.pids("begun", 1)
			s.beaten(job)
			w.signal(syscall.SIGSTOP)
			frozen := time.Now()
			if finishes {
				s.touch("go")
			}
			s.eventually("the end of the command", func() bool { return gone(pids) })
			// 14 s, if ten seconds were left from TERM to KILL
			if d := time.Since(frozen); d > 11*time.Second {
				t.Errorf("the command outlived its lease of 6s: it ended %v after the freeze", d)
			}
			s.expire()
			s.run("reschedule", job, "--delay", "0s")
			s.touch("go")
			s.work("--worker", "B", "--once", "--", "echo", "from B").wantExit(0)
			w.signal(syscall.SIGCONT)
			s.eventually("it knows", func() bool { // by its own clock, or by a refused heartbeat or end
				said := w.said.String()
				return strings.Contains(said, "lost job="+job) || finishes &&
					strings.Contains(said, "end refused job="+job)
			})
			w.signal(syscall.SIGTERM)
			w.wantExit(0)
			s.wantJob(job, `"state":"succeeded"`, `"worker":"B"`, `"attempt":2`)
			events := unbeaten(s.events(job))
			kinds := strings.TrimSuffix(strings.ReplaceAll(events, " refused", ""), " stopped")
			// refused by the ledger, before the worker knew
			asked := finishes && !strings.Contains(w.said.String(), worker.ErrNotRenewed.Error())
			if kinds != "enqueued claimed reclaimed rescheduled claimed succeeded" || asked && kinds == events {
				t.Errorf("events: %s", events)
			}
			s.run("verify")
		})
	}
}

func TestWorkKilledLeavesNoProcess(t *testing.T) {
	ledgertest.Slow(t)
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid")
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux promises to find processes in other sessions")
	}
	t.Parallel()
	s := newSite(t)
	job := s.enqueue("x")
	w := s.work("--worker", "A", "--lease", "9s", "--", "sh", "-c", `trap '' TERM HUP INT
sleep 30 & echo $! >>pids
(setsid sh -c 'echo $$ >>pids; sleep 30; :' &)
until [ "$(wc -l <pids)" -ge 2 ]; do sleep 0.01; done
echo $$ >>pids
sleep 30`)
	pids := s.pids("pids", 3)
	killed := time.Now()
	w.signal(syscall.SIGKILL)
	s.eventually("the end of all processes", func() bool { return gone(pids) })
	d := time.Since(killed)
	if t.Logf("all were gone after %v", d); d > 5*time.Second { // well before the end of the lease
		t.Errorf("some were there for %v", d)
	}
	s.expire()
	if got := unbeaten(s.events(job)); got != "enqueued claimed reclaimed" {
		t.Errorf("events: %s", got)
	}
	s.wantJob(job, `"failures":1`, `"error_code":"lease_expired"`)
	s.run("verify")
}

// Workers are replaced repeatedly while they work: no deploy causes a failure, and no job is lost.
func TestWorkManyDeploys(t *testing.T) {
	t.Parallel()
	deploys, jobs, nap := ledgertest.Size(6, 4, 10), ledgertest.Size(60, 40, 80), "0.05"
	if testing.Short() { // as under the race detector, where everything takes longer
		nap = "0.5"
	}
	s := newSite(t)
	s.enqueueLines(jobs)
	released, done := 0, regexp.MustCompile(` (\d+) succeeded, \d+ failed, (\d+) released, `)
	for i := range deploys {
		sleep := nap
		if i == 0 { // the jobs of this one are under way when the second signal comes, however slow the machine
			sleep = "60"
		}
		w := s.work("-j", "4", "--", "sh", "-c", `sleep `+sleep+`; exec sh -c 'echo done; exit 0'`)
		s.eventually("the worker works", func() bool {
			out, err := s.command("list", "--limit", "1000", "--json").Output()
			return err == nil && bytes.Contains(out, fmt.Appendf(nil, `-%d"`, w.Process.Pid))
		})
		time.Sleep(time.Duration(13*i%50) * time.Millisecond) // deploys happen at different points of a job
		w.signal(syscall.SIGTERM)
		if i%2 == 0 { // otherwise two signals may merge into one
			w.wantSaid("no more jobs")
		}
		_ = w.Process.Signal(syscall.SIGTERM) // unless all jobs have finished, and the worker has ended
		w.wantExit(0)
		n := done.FindStringSubmatch(w.said.String())
		if n == nil {
			t.Fatalf("it does not say what it has done: %s", w.said)
		}
		back, _ := strconv.Atoi(n[2])
		released += back
		if succeeded, _ := strconv.Atoi(n[1]); succeeded > 0 { // the next worker gets as many jobs
			s.enqueueLines(succeeded)
			jobs += succeeded
		}
	}
	w := s.work("--drain", "-j", "8", "--", "true")
	w.wantExit(0)
	t.Logf("%d jobs given back in %d deploys", released, deploys)
	if released == 0 {
		t.Error("no deploy met a job under way")
	}
	if out, err := s.command("events", "--kind", "failed", "--kind", "reclaimed", "--kind",
		"refused").Output(); err == nil {
		t.Errorf("something went wrong:\n%s", out)
	}
	if got := strings.Count(s.run("list", "--limit", "0", "--state", "succeeded", "--json"), "\n") +
		1; got != jobs {
		t.Errorf("%d jobs succeeded, want %d", got, jobs)
	}
	s.run("verify")
}

func TestSnoozeLimitIsFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.enqueue("x")
	store, err := ledger.OpenExisting(t.Context(), s.path("jobledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	service := &commands.Service{Store: store}
	for range commands.MaxSnoozes {
		var held []string
		s.eventually("the next claim", func() bool {
			jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
				Worker: event.Worker{Name: "w", Boot: "b"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobs {
				held = append(held, j.Token)
			}
			return len(held) == 1
		})
		if _, err := service.Apply(t.Context(), "worker:w", event.JobID(job),
			commands.Release{Token: held[0], Snooze: true, Delay: time.Microsecond}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s.wantJob(job, `"attempt":99`, `"failures":0`)
	w := s.work("--once", "--", "sh", "-c", "echo busy; exit 75")
	w.wantExit(0)
	w.wantSaid("1 failed, 0 released")
	s.wantJob(job, `"state":"queued"`, `"attempt":100`, `"failures":1`, `"error_code":"snoozed_too_often"`)
	if out := s.run("events", "--kind", "failed", "--json"); !strings.Contains(out, `"stdout_bytes":5`) {
		t.Errorf("the failure says nothing of the output: %s", out)
	}
	s.run("verify")
}

func TestWorkOutputFloodIsBounded(t *testing.T) {
	t.Parallel()
	size := ledgertest.Size[int64](32<<20, 160<<20, 256<<20) // by default more than the worker may use
	s := newSite(t)
	job := s.enqueue("x")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := s.command("work", "-q", "mail", "--once", "--", "sh", "-c",
		fmt.Sprintf("head -c %d /dev/zero & head -c %d /dev/zero >&2; wait; echo last words", size/2, size/2))
	cmd.Stderr = null
	w := s.start(cmd)
	// If the system reports the worker's memory, in KiB. Its rusage would include the memory of the test that
	// started it.
	used := 0
	s.eventually("it ends", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Process.Pid))
		if _, peak, ok := strings.Cut(string(status), "\nVmHWM:"); ok {
			_, _ = fmt.Sscan(peak, &used)
		}
		select {
		case <-w.exited:
			return true
		default:
			return false
		}
	})
	w.wantExit(0)
	if t.Logf("%d MiB of output took %d MiB of memory", size>>20, used>>10); used > 128<<10 && !underRace {
		t.Errorf("the worker took %d MiB", used>>10)
	}
	if _, err := os.Stat("/proc/self/status"); err == nil && used == 0 {
		t.Error("its peak of memory was never seen")
	}
	for _, name := range []string{"1.out", "1.err"} {
		info, err := os.Stat(s.path(filepath.Join("jobledger.db.logs", job, name)))
		if err != nil || info.Size() > 1<<20+100 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if text := s.run("logs", job); !strings.HasSuffix(text, "\x00last words") ||
		!strings.Contains(text, "jobledger left out") {
		t.Errorf("the log ends with %q", text[max(0, len(text)-100):])
	}
	s.run("verify")
}
