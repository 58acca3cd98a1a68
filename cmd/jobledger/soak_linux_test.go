package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// The soak runs real processes of the program on one ledger. They are killed and stopped at any moment, and
// now and then the disk is full. At the end, everything that was acknowledged must be stored, every job must
// have ended, none may have run twice at once, and no process or file may be left.
//
//	go test ./cmd/jobledger -v -run 'Soak$' -soak 10m
//
// prints a table of what happened. Without -soak it lasts a few seconds. TestSoakOfArchive is the same with
// an archive policy.

const (
	soakLease   = time.Second   // the shortest allowed, so that many run out
	soakReserve = time.Minute   // for the last jobs and the checks after the load
	soakInside  = "SOAK_INSIDE" // set in the process that has namespaces of its own
	soakNotes   = "SOAK_NOTES"  // the folder where the jobs' commands record what they do
)

func TestSoak(t *testing.T) {
	soakOnce(t, ledgertest.SoakFor(t, ledgertest.Size[time.Duration](1, 1, 2)*time.Second, time.Second,
		soakReserve), false)
}

// soakOnce is one soak, which puts the program under load for so long.
func soakOnce(t *testing.T, d time.Duration, archives bool) {
	t.Helper()
	if os.Getenv(soakInside) == "" && soakElsewhere(t, d) {
		return
	}
	s := newSoak(t, rand.Uint64())
	s.archives = archives
	if os.Getenv(soakInside) != "" {
		s.haveDisk(d)
	}
	s.short = d < 10*time.Second
	s.edges = !s.short || ledgertest.Long()
	s.Logf("%v, seed %d", d.Round(time.Millisecond), s.seed)
	s.run("init")
	s.setPolicy()
	s.admitSecond()
	s.putUnderLoad(d)
	s.comeToRest()
	for _, wrong := range s.check() {
		s.Error(wrong)
	}
	s.Logf("what happened:\n\n%s", s.table())
	s.wantFaults()
}

// soakElsewhere runs the soak in a process that is the first one of its own namespaces. What it starts ends
// with it, and it can mount a disk that is small enough to fill. It returns false where the system does not
// permit that.
func soakElsewhere(t *testing.T, d time.Duration) bool {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0", "-soak="+d.String(),
		fmt.Sprintf("-test.short=%t", testing.Short()), fmt.Sprintf("-long=%t", ledgertest.Long()))
	cmd.Env = append(os.Environ(), soakInside+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	runtime.LockOSThread() // Pdeathsig refers to the end of this thread
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return true
	case exited && exit.ExitCode() != soakNoDisk:
		t.Errorf("the soak ended with %v", err)
		return true
	}
	t.Logf("no namespaces of its own (%v), and so no full disk", err)
	return false
}

// soakNoDisk is the exit code of a process that cannot use its namespaces.
const soakNoDisk = 99

type digest = [sha256.Size]byte

// soak is one soak, or its checks.
type soak struct {
	site         // its folder holds only the ledger
	notes string // a folder on another disk, which is never full
	seed  uint64
	short bool // no job takes much longer than a lease
	edges bool // a second name, swapped logs, idle connections, a second user, a command that becomes root
	// what has ended is archived, and leaves the ledger
	archives bool
	second   string // the folder of a second user of the ledger's group, with the program; "": there is none
	disk     int64  // the size of the ledger's disk in bytes; 0: it cannot be filled
	under    context.Context
	stop     context.CancelFunc // ends the load
	steady   *soakProcess       // the worker without faults
	rooting  *soakProcess       // the worker whose command has become root
	ghost    claimed            // a claim whose owner is silent until the end

	ready  atomic.Int64 // jobs, at the last poll
	wal    atomic.Int64 // the largest -wal file seen
	began  time.Time
	lasted time.Duration // the load
	files  int           // open in the steady worker at the end
	memory int64         // of it, in bytes

	filling, naming, swapping sync.Mutex // while the disk is full, the file has two names, the logs are away

	mu      sync.Mutex // guards what follows
	live    map[*soakProcess]bool
	sent    map[string]digest // of the payload of each job, by its name, whether it was acknowledged or not
	acks    []ack
	cut     map[string]time.Time // when a job was last cancelled
	wrong   []string             // what should not have happened
	count   map[string]int       // what happened, see table
	history recorded             // what the ledger says at the end
	named   map[string]string    // by job: its name, where that was acknowledged
	sizes   []size               // of the ledger, over the time, with archives
}

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	dir, err := os.MkdirTemp("", "jobledger-soak-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{site: site{TB: t, dir: filepath.Join(dir, "disk")}, notes: filepath.Join(dir, "notes"),
		seed: seed,
		live: make(map[*soakProcess]bool), sent: make(map[string]digest), cut: make(map[string]time.Time),
		count: make(map[string]int)}
	s.under, s.stop = context.WithCancel(t.Context())
	for _, folder := range []string{s.dir, s.notes, filepath.Join(s.notes, "locks")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = s.command("backup", filepath.Join(s.notes, "ledger.db")).Run()
			t.Logf("the ledger, what was said, and what the commands wrote down are in %s", s.notes)
			return
		}
		if s.disk > 0 {
			_ = unix.Unmount(s.dir, 0)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.endAll)
	return s
}

// haveDisk mounts a disk for the ledger, and /proc for this process, the first of its namespace.
func (s *soak) haveDisk(d time.Duration) {
	s.disk = 512<<20 + int64(d.Seconds())<<22 // more than it will need
	for _, m := range []struct {
		from, to, kind string
		flags          uintptr
		options        string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"disk", s.dir, "tmpfs", 0, diskSize(s.disk)},
	} {
		if err := unix.Mount(m.from, m.to, m.kind, m.flags, m.options); err != nil {
			s.Logf("mount %s at %s: %v", m.kind, m.to, err)
			os.Exit(soakNoDisk)
		}
	}
}

func diskSize(bytes int64) string { return "mode=700,size=" + strconv.FormatInt(bytes, 10) }

// dice returns the random source of the n-th user with some purpose. The same seed gives the same numbers;
// the result also depends on timing.
func (s *soak) dice(purpose string, n int) *rand.Rand {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], s.seed)
	seed[8] = byte(n)
	copy(seed[9:], purpose)
	return rand.New(rand.NewChaCha8(seed))
}

func (s *soak) underLoad() bool { return s.under.Err() == nil }

// pause waits, but not longer than the load lasts.
func (s *soak) pause(d time.Duration) {
	select {
	case <-s.under.Done():
	case <-time.After(d):
	}
}

// faulty records a violation.
func (s *soak) faulty(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 30 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	} else {
		s.stop() // more violations add nothing
	}
}

func (s *soak) happened(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[what] > 0
}

func (s *soak) counted(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[what] += n
}

// soakProcess is a process of the program.
type soakProcess struct {
	*exec.Cmd
	role   string
	stderr lockedBuffer
	log    *os.File // a copy of that, for debugging

	// Under soak.mu.
	killed bool      // by a fault
	began  time.Time // plus the time for which it was stopped
	frozen time.Time // since when it is stopped
}

// begin starts the program. The caller calls end.
func (s *soak) begin(role string, stdin io.Reader, stdout io.Writer, words ...string) *soakProcess {
	cmd := s.command(words...)
	if words[0] == "sh" {
		cmd = exec.Command("sh", words[1:]...)
		cmd.Dir = s.dir
	}
	return s.beginAs(role, cmd, stdin, stdout)
}

// beginAs starts cmd. The caller calls end.
func (s *soak) beginAs(role string, cmd *exec.Cmd, stdin io.Reader, stdout io.Writer) *soakProcess {
	p := &soakProcess{Cmd: cmd, role: role, began: time.Now()}
	log, err := os.OpenFile(filepath.Join(s.notes, role+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.faulty("%v", err)
		return nil
	}
	p.log = log
	p.Env = append(os.Environ(), soakNotes+"="+s.notes, "JOBLEDGER_DB="+s.path("jobledger.db"))
	if s.archives && cmd.Args[0] == "jobledger" {
		if err := hasty(cmd); err != nil {
			s.faulty("%v", err)
			return nil
		}
		p.Env = append(p.Env, hasteEnv+"="+s.events())
	}
	p.Stdin, p.Stdout, p.Stderr = stdin, stdout, io.MultiWriter(&p.stderr, log)
	if err := s.launch(p); err != nil {
		s.faulty("start %s: %v", role, err)
		return nil
	}
	return p
}

func (s *soak) launch(p *soakProcess) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := p.Start()
	if err == nil {
		s.live[p] = true
	}
	return err
}

// end waits for the end of p. Its exit code must be 0, 75 or one of the others; it is -1 if a fault has
// killed it.
func (s *soak) end(p *soakProcess, others ...int) (code int) {
	if p == nil {
		return -1
	}
	err := p.Wait()
	_ = p.log.Close()
	code = p.ProcessState.ExitCode()
	if s.archives {
		others = append(others, cli.ExitNoJob) // it has left the ledger
	}
	s.mu.Lock()
	delete(s.live, p)
	killed := p.killed
	s.mu.Unlock()
	said := p.stderr.String()
	switch {
	case strings.Contains(said, "DATA RACE") || strings.Contains(said, "goroutine "):
		s.faulty("%s %q broke: %s", p.role, p.Args[1:], said)
	case code == cli.ExitBusy:
		s.counted("busy", 1)
		if strings.Contains(said, "disk is full") {
			s.counted("refused because the disk was full", 1)
		}
	case code == cli.ExitUnexpected && strings.Contains(said, "names (hard links)") &&
		s.happened("second names"):
		s.counted("refused because of a second name", 1)
		return cli.ExitBusy // it may be asked again
	case s.archives && code == cli.ExitUnexpected && s.happened("swapped folders of logs") &&
		strings.Contains(said, "folder of logs is not to be trusted"):
		s.counted("refused because of a swapped folder", 1)
		return cli.ExitBusy
	case s.archives && code == cli.ExitConflict && strings.Contains(said, "as old as jobs that are archived"):
		return cli.ExitBusy // a machine that paused: the ids of a request are older than the archive's age
	case code == 0 && err == nil, code == -1 && killed, slices.Contains(others, code):
	default:
		s.faulty("%s %q ended with %v: %s", p.role, p.Args[1:], err, said)
	}
	return code
}

// do runs one command to its end.
func (s *soak) do(role, stdin string, words []string, others ...int) (stdout string, code int) {
	var out bytes.Buffer
	code = s.end(s.begin(role, strings.NewReader(stdin), &out, words...), others...)
	return strings.TrimSuffix(out.String(), "\n"), code
}

// endAll kills the processes of the soak that are left: none, unless it was cancelled.
func (s *soak) endAll() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.live {
		_ = p.Process.Kill()
	}
}

// putUnderLoad runs all users of the ledger for so long.
func (s *soak) putUnderLoad(d time.Duration) {
	s.began = time.Now()
	s.steady = s.startWorker("steady", 4)
	s.claimAsGhost()
	var load, faults sync.WaitGroup
	for _, loop := range s.loops() {
		load.Go(loop)
	}
	load.Go(s.watch)
	faults.Go(s.strike)
	s.pause(d)
	for !s.isOne() && time.Since(s.began) < d+soakReserve/2 { // some machines start processes slowly
		s.pause(50 * time.Millisecond)
	}
	s.stop()
	faults.Wait() // it continues what it has stopped
	load.Wait()
	s.lasted = time.Since(s.began)
}

// isOne reports whether everything has happened that a soak requires.
func (s *soak) isOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kills, _ := s.sum("kills of ")
	stops, _ := s.sum("stops of ")
	_, err := os.Stat(filepath.Join(s.notes, "ran"))
	edges := !s.edges || s.count["second names"] > 0 && s.count["idle connections"] > 0
	return kills > 0 && stops > 0 && len(s.acks) > 0 && err == nil && edges || len(s.wrong) > 0
}

// watch checks what must not grow, and logs the progress each minute.
func (s *soak) watch() {
	for logged := time.Now(); s.underLoad(); s.pause(100 * time.Millisecond) {
		s.reap()
		s.measure()
		if info, err := os.Stat(s.path("jobledger.db-wal")); err == nil && info.Size() > s.wal.Load() {
			s.wal.Store(info.Size())
		}
		if queues, ok := s.status(); ok {
			var ready int64
			for _, q := range queues {
				ready += q.Ready
			}
			s.ready.Store(ready)
		}
		if time.Since(logged) > time.Minute {
			logged = time.Now()
			s.mu.Lock()
			s.Logf("%v: %d jobs sent, %d ready, %d wrong", time.Since(s.began).Round(time.Second), len(s.sent),
				s.ready.Load(), len(s.wrong))
			s.mu.Unlock()
		}
	}
}

// reap waits for orphans, such as the supervisors of killed workers. The first process of the namespace is
// their parent.
func (s *soak) reap() {
	if s.disk == 0 {
		return // another process is the first one
	}
	s.mu.Lock() // processes are started under it
	defer s.mu.Unlock()
	ours := make(map[int]bool)
	for p := range s.live {
		ours[p.Process.Pid] = true
	}
	for _, pid := range childrenOf(os.Getpid()) {
		if !ours[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// comeToRest lets the last jobs end, and then the last processes.
func (s *soak) comeToRest() {
	for _, queue := range soakQueues {
		s.run("resume", "-q", queue)
	}
	s.within(time.Minute, "no job is ready or held any more", func() bool {
		s.run("sweep", "--grace", "0s")
		queues, ok := s.status()
		return ok && !slices.ContainsFunc(queues, func(q soakQueue) bool {
			return q.Claimed+q.Running > 0 || q.Ready > 0 && q.Queue != ghostQueue && q.Queue != rootQueue
		})
	})
	s.ghostReturns()
	s.within(time.Minute, "nothing waits for a later time any more", func() bool {
		waiting := s.openJobs()
		if len(waiting) > 0 {
			s.do("operator", "", append([]string{"cancel", "--reason", "the soak is over"}, waiting...),
				cli.ExitConflict)
		}
		return len(waiting) == 0
	})
	s.files, s.memory = s.holds(s.steady)
	s.endWorker(s.steady)
	s.within(10*time.Second, "no process is left", func() bool { return len(processesIn(s, s.dir)) == 0 })
}

// within polls until ok returns true.
func (s *soak) within(limit time.Duration, what string, ok func() bool) {
	for end := time.Now().Add(limit); !ok(); time.Sleep(50 * time.Millisecond) { // pause of a poll
		if time.Now().After(end) {
			s.faulty("not within %v: %s", limit, what)
			return
		}
	}
}
