package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// strike makes faults happen until the end of the load, and returns when all have been undone. It goes
// through all kinds once, then continues at random.
func (s *soak) strike() {
	faults := []func(*rand.Rand){
		s.killWorker, s.stopForLong, s.killCommand, s.killJob, s.stopCommand, s.fillDisk, s.killParent,
		s.limitFiles,
		s.killWorker, s.killCommand, s.killCommand, s.stopCommand, s.stopForLong, s.stopForShort,
	}
	if s.edges {
		faults = slices.Insert(faults, 6, s.nameTwice, s.swapLogs, s.idle)
	}
	dice := s.dice("faults", 0)
	var under sync.WaitGroup
	defer under.Wait()
	for i := 0; s.underLoad(); i++ {
		s.pause(time.Duration(20+dice.IntN(40)+min(i, 10)*dice.IntN(40)) * time.Millisecond)
		if s.underLoad() {
			fault := faults[i%len(faults)]
			if i >= len(faults) {
				fault = faults[dice.IntN(len(faults))]
			}
			under.Go(func() { fault(s.dice("fault", i)) })
		}
	}
}

// victim returns a running process with a role for which ok returns true; never the steady worker.
func (s *soak) victim(dice *rand.Rand, ok func(role string) bool) *soakProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*soakProcess
	for p := range s.live {
		if p.role != "steady" && p.role != "second" && ok(p.role) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b *soakProcess) int { return a.Process.Pid - b.Process.Pid })
	return found[dice.IntN(len(found))]
}

func lasting(role string) bool { return role == "worker" || role == "sweeper" || role == soakServer }
func passing(role string) bool { return !lasting(role) }

func (s *soak) killWorker(dice *rand.Rand)  { s.kill(s.victim(dice, lasting)) }
func (s *soak) killCommand(dice *rand.Rand) { s.kill(s.victim(dice, passing)) }

func (s *soak) kill(p *soakProcess) {
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[p] && p.Process.Kill() == nil {
		p.killed = true
		s.count["kills of "+p.role]++
	}
}

// stopForLong outlasts a lease, stopForShort does not. stopCommand stops a command anywhere, even while it
// holds the write lock.
func (s *soak) stopForLong(dice *rand.Rand) {
	upTo := 2 * soakLease
	if !s.short {
		upTo = 6 * soakLease // long enough for another worker to get the job
	}
	s.freeze(s.victim(dice, lasting), soakLease+time.Duration(dice.Int64N(int64(upTo))))
}

func (s *soak) stopForShort(dice *rand.Rand) {
	s.freeze(s.victim(dice, lasting), time.Duration(dice.Int64N(int64(soakLease/2))))
}

func (s *soak) stopCommand(dice *rand.Rand) {
	s.freeze(s.victim(dice, passing), time.Duration(dice.Int64N(int64(soakLease))))
}

func (s *soak) freeze(p *soakProcess, d time.Duration) {
	if p == nil || !s.halted(p) {
		return
	}
	s.pause(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.began, p.frozen = p.began.Add(time.Since(p.frozen)), time.Time{} // the pause does not count
	_ = p.Process.Signal(syscall.SIGCONT)
}

func (s *soak) halted(p *soakProcess) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.frozen.IsZero() || p.Process.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	p.frozen = time.Now()
	s.count["stops of "+p.role]++
	return true
}

// killJob kills the command of a job; killParent kills the supervisor of one.
func (s *soak) killJob(dice *rand.Rand) {
	if parent := s.someParent(dice); parent > 0 {
		for _, job := range childrenOf(parent) {
			s.killOther(job, "job")
		}
	}
}

// killParent stops the command first, so that it starts nothing more, and also kills what it has started,
// which no other process would find.
func (s *soak) killParent(dice *rand.Rand) {
	parent := s.someParent(dice)
	if parent == 0 {
		return
	}
	jobs := childrenOf(parent)
	for _, job := range jobs {
		_ = unix.Kill(job, unix.SIGSTOP)
	}
	below := slices.Clone(jobs)
	for i := 0; i < len(below); i++ {
		below = append(below, childrenOf(below[i])...)
	}
	s.killOther(parent, "supervising parent")
	for _, pid := range below {
		s.killOther(pid, "")
	}
}

// someParent returns a supervisor of any worker, or 0.
func (s *soak) someParent(dice *rand.Rand) int {
	s.mu.Lock()
	var parents []int
	for p := range s.live {
		if lasting(p.role) || p.role == "steady" || p.role == "shell" {
			parents = append(parents, childrenOf(p.Process.Pid)...)
		}
	}
	s.mu.Unlock()
	parents = slices.DeleteFunc(parents, func(pid int) bool { // a shell has other children, too
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return !strings.HasSuffix(string(cmdline), "\x00supervise\x00")
	})
	if len(parents) == 0 {
		return 0
	}
	slices.Sort(parents)
	return parents[dice.IntN(len(parents))]
}

// killOther kills a process that some worker has started: one whose folder is that of the ledger.
func (s *soak) killOther(pid int, what string) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || cwd != s.dir {
		return
	}
	if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil && what != "" {
		s.counted("kills of "+what, 1)
	}
}

func childrenOf(pid int) (children []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// fillDisk shrinks the disk of the ledger to its content for a while.
func (s *soak) fillDisk(dice *rand.Rand) {
	if s.disk == 0 || !s.filling.TryLock() {
		return
	}
	defer s.filling.Unlock()
	room := dice.Int64N(64 << 10)
	for range 10 {
		var st unix.Statfs_t
		if err := unix.Statfs(s.dir, &st); err != nil {
			s.faulty("statfs: %v", err)
			return
		}
		used := int64(st.Blocks-st.Bfree) * st.Bsize
		// fails if the content has grown
		if unix.Mount("disk", s.dir, "tmpfs", unix.MS_REMOUNT, diskSize(used+room)) == nil {
			s.counted("times the disk was full", 1)
			break
		}
	}
	s.pause(200*time.Millisecond + time.Duration(dice.IntN(1000))*time.Millisecond)
	if err := unix.Mount("disk", s.dir, "tmpfs", unix.MS_REMOUNT, diskSize(s.disk)); err != nil {
		s.faulty("give the disk its size back: %v", err)
	}
}

// limitFiles limits the files of a worker or a command to 16 KiB for a while.
func (s *soak) limitFiles(dice *rand.Rand) {
	p := s.victim(dice, func(string) bool { return true })
	if p == nil {
		return
	}
	var old unix.Rlimit
	if unix.Prlimit(p.Process.Pid, unix.RLIMIT_FSIZE, nil, &old) != nil ||
		unix.Prlimit(p.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 16 << 10, Max: old.Max}, nil) != nil {
		return // it has ended
	}
	s.counted("limits to the size of files", 1)
	s.pause(200*time.Millisecond + time.Duration(dice.IntN(1000))*time.Millisecond)
	_ = unix.Prlimit(p.Process.Pid, unix.RLIMIT_FSIZE, &old, nil)
}

// nameTwice gives the ledger a second name for a while. Processes that have it open go on, and others are
// refused what writes.
func (s *soak) nameTwice(dice *rand.Rand) {
	if !s.naming.TryLock() {
		return
	}
	defer s.naming.Unlock()
	second := s.path("second.db")
	if err := os.Link(s.path("jobledger.db"), second); err != nil {
		if !errors.Is(err, unix.ENOSPC) {
			s.faulty("%v", err)
		}
		return
	}
	s.counted("second names", 1)
	s.pause(500*time.Millisecond + time.Duration(dice.IntN(1000))*time.Millisecond)
	if err := os.Remove(second); err != nil {
		s.faulty("%v", err)
	}
}

// stranger is a user who has nothing to do with the ledger.
const stranger = 12345

// swapLogs puts a link of another user in the place of the folder of logs for a while. No output is kept
// behind it, and no job fails because of that.
func (s *soak) swapLogs(dice *rand.Rand) {
	if !s.swapping.TryLock() {
		return
	}
	defer s.swapping.Unlock()
	logs, aside, trap := s.path("jobledger.db.logs"), s.path("logs.aside"), filepath.Join(s.notes, "trap")
	if _, err := os.Lstat(logs); err != nil || s.disk == 0 {
		return
	}
	link := filepath.Join(s.notes, "link")
	if err := os.MkdirAll(trap, 0o700); err != nil {
		s.faulty("%v", err)
		return
	}
	if os.Symlink(trap, link) != nil {
		return
	}
	defer os.Remove(link)
	if os.Lchown(link, stranger, stranger) != nil || os.Rename(logs, aside) != nil { // there is one user only
		return
	}
	if os.Symlink(trap, logs) == nil && os.Lchown(logs, stranger, stranger) == nil {
		s.counted("swapped folders of logs", 1)
		s.pause(500*time.Millisecond + time.Duration(dice.IntN(1000))*time.Millisecond)
	}
	if err := errors.Join(os.RemoveAll(logs), os.Rename(aside, logs)); err != nil {
		s.faulty("%v", err)
	}
	if left, err := os.ReadDir(trap); err != nil || len(left) > 0 {
		s.faulty("output was written through a link of another user: %v, %v", left, err)
	}
}

// idle opens connections to the server that say nothing.
func (s *soak) idle(dice *rand.Rand) {
	var open []net.Conn
	for range 200 {
		conn, err := net.Dial("unix", filepath.Join(s.notes, "serve.sock"))
		if err != nil {
			break // the server was killed
		}
		open = append(open, conn)
	}
	s.counted("idle connections", len(open))
	s.pause(time.Duration(dice.IntN(2000)) * time.Millisecond)
	for _, conn := range open {
		_ = conn.Close()
	}
}
